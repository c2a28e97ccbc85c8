// An nginx in front of several replicas, each request to the next of them, as deploy/ configures it.
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePorts, outlive } from '../basics/child-server.ts'
import type { Need } from '../basics/needs.ts'
import { projectRoot } from '../basics/test-project.ts'
import { until } from '../clocks/until.ts'

export interface NginxServer {
  readonly url: string
  /** All that it keeps is in there. */
  readonly folder: string
  /** From now on new requests go to these alone; what runs goes on where it is. */
  reload(upstreams: readonly string[]): Promise<void>
  stop(): Promise<void>
}

const program = Bun.which('nginx', { PATH: `${process.env['PATH'] ?? ''}:/usr/sbin` })

export const nginx: Need = {
  isMet: program !== null && process.platform === 'linux',
  reason: 'there is no nginx: apt-get install --no-install-recommends nginx-light (Linux alone)',
}

/** The configuration that deploy/ ships, with the addresses of the test. */
function balancer(upstreams: readonly string[], listen: string): string {
  const servers = upstreams.map((url) => `  server ${new URL(url).host} max_fails=0;\n`)
  return readFileSync(join(projectRoot, 'deploy/proxy/nginx-compose.conf'), 'utf8')
    .replace(/(?: *server berth-\d:5000 max_fails=0;\n)+/, servers.join(''))
    .replace('listen 8080;', `listen ${listen};`)
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
    async reload(next) {
      const before = workersOf(master)
      write(next)
      process.kill(master, 'SIGHUP')
      await until('new workers have taken over', () => {
        const now = workersOf(master)
        return now.length > 0 && !now.some((pid) => before.includes(pid))
      })
    },
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
