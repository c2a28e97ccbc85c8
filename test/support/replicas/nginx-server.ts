// An nginx in front of several replicas, each request to the next of them: the deployment that the tests try out, and the
// model of the one that the documents show.
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePorts, outlive } from '../basics/child-server.ts'
import type { Need } from '../basics/needs.ts'
import { until } from '../clocks/until.ts'

export interface NginxServer {
  readonly url: string
  readonly version: string
  /** All that it keeps is in there. */
  readonly folder: string
  /** From now on new requests go to these alone; what runs goes on where it is. */
  reload(upstreams: readonly string[]): Promise<void>
  /** Its error log. */
  errors(): string
  stop(): Promise<void>
}

const program = Bun.which('nginx', { PATH: `${process.env['PATH'] ?? ''}:/usr/sbin` })

export const nginx: Need = {
  isMet: program !== null && process.platform === 'linux',
  reason: 'there is no nginx: apt-get install --no-install-recommends nginx-light (Linux alone)',
}

/** What stands in the documents, too. */
function balancer(upstreams: readonly string[], listen: string): string {
  const replicas = upstreams.map((url) => `    server ${new URL(url).host} max_fails=0;`)
  return `
  upstream berth {
    zone berth 256k;              # one turn for all workers
    # No replica is left out for what it answered: a 503 may be about one request (an identity service that is away), and
    # must not cost the others. One that is gone costs a connection that is refused, and the next is asked.
${replicas.join('\n')}
    keepalive 64;
    keepalive_timeout 5s;         # shorter than server.idle: no request meets a connection that is about to be closed
  }

  server {
    listen ${listen};

    client_max_body_size 0;
    location / {
      proxy_pass http://berth;
      proxy_http_version 1.1;     # else layers that come in chunks are refused, and no connection is kept
      proxy_set_header Connection "";
      proxy_request_buffering off;
      proxy_buffering off;
      proxy_connect_timeout 2s;
      proxy_read_timeout 900s;
      # Another replica is asked when one is gone or leaving. What was sent is sent again only where that does no harm: never
      # a POST or a PATCH, and never a body of which a part went through unbuffered.
      proxy_next_upstream error timeout http_503;
      proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_set_header X-Forwarded-Proto $scheme;
    }
  }
`
}

/** Around it, what keeps an nginx of the test's own inside its folder. */
function configOf(folder: string, balanced: string): string {
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `  ${name}_temp_path ${folder}/${name};`,
  )
  return `daemon off;
${process.getuid?.() === 0 ? 'user root;' : ''}
worker_processes 2;
pid ${folder}/pid;
error_log ${folder}/error.log warn;
events { worker_connections 2048; }
http {
  access_log off;
${paths.join('\n')}
${balanced}}
`
}

export async function startNginx(upstreams: readonly string[]): Promise<NginxServer> {
  if (program === null) throw new Error(nginx.reason)
  const folder = mkdtempSync(join(tmpdir(), 'berth-nginx-'))
  const [port] = await freePorts(1)
  const listen = `127.0.0.1:${port}`
  const config = join(folder, 'nginx.conf')
  const write = (urls: readonly string[]) => writeFileSync(config, configOf(folder, balancer(urls, listen)))
  write(upstreams)
  const child = spawn(program, ['-c', config, '-e', join(folder, 'error.log')], { stdio: 'ignore' })
  const watch = outlive([child], folder)
  const master = child.pid ?? 0
  await until('nginx has begun', () => workersOf(master).length > 0)
  return {
    url: `http://${listen}`,
    folder,
    version: /nginx\/(\S+)/.exec(Bun.spawnSync([program, '-v']).stderr.toString())?.[1] ?? '',
    async reload(next) {
      const before = workersOf(master)
      write(next)
      process.kill(master, 'SIGHUP')
      await until('new workers have taken over', () => {
        const now = workersOf(master)
        return now.length > 0 && !now.some((pid) => before.includes(pid))
      })
    },
    errors: () => readFileSync(join(folder, 'error.log'), 'utf8'),
    stop: () => watch.end(),
  }
}

/** Those that take requests; a worker that shuts down says so in its title. */
function workersOf(master: number): string[] {
  const children = readProc(`${master}/task/${master}/children`).split(' ')
  return children.filter((pid) => /^nginx: worker process\0*$/.test(readProc(`${pid}/cmdline`).trimEnd()))
}

function readProc(path: string): string {
  try {
    return readFileSync(`/proc/${path}`, 'utf8')
  } catch {
    return ''
  }
}
