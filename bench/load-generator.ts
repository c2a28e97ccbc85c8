// Many small requests over keep-alive connections, one request at a time on each. `wrk` sends GET, and `raw-load.ts` sends
// HEAD, and GET if `wrk` is not installed.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Load, runRawLoad } from './raw-load.ts'

export interface LoadGenerator {
  nameOf(method: 'GET' | 'HEAD'): string
  /** Returns the number of good responses. One bad response is an error. */
  run(load: Load): Promise<number>
}

export function chooseLoadGenerator(folder: string): LoadGenerator {
  const wrk = Bun.which('wrk')
  const programs = {
    GET:
      wrk === null
        ? { name: 'own client (wrk is not installed)', run: runRawLoad }
        : { name: 'wrk', run: (load: Load) => runWrk(wrk, folder, load) },
    // After a HEAD, wrk waits for the body that `Content-Length` announces. ab speaks HTTP/1.0: Bun closes such a
    // connection after each answer, and servers in Go keep it.
    HEAD: { name: 'own client', run: runRawLoad },
  }
  return {
    nameOf: (method) => programs[method].name,
    run: (load) => programs[load.method ?? 'GET'].run(load),
  }
}

async function runWrk(wrk: string, folder: string, load: Load): Promise<number> {
  const script = join(folder, 'load.lua')
  writeFileSync(script, wrkScript(load.headers))
  const numbers = ['--threads', '1', '--connections', `${load.connections}`]
  // wrk accepts whole seconds only. `SIGINT` ends it earlier; its own limit applies if this process is killed.
  const limit = ['--duration', `${Math.ceil(load.seconds) + 1}s`, '--timeout', '60s']
  const printed = await runUntil(load.seconds, [wrk, ...numbers, ...limit, '--script', script, load.url])
  const found = /^BENCH (\d+) (\d+)$/m.exec(printed)
  return expectGood(load, found?.[1], found?.[2], printed)
}

/** Headers are set once and no callback runs per request, so wrk builds the request only once. */
function wrkScript(headers: Readonly<Record<string, string>>): string {
  const lines = Object.entries(headers).map(([name, value]) => `wrk.headers[${quoteLua(name)}] = ${quoteLua(value)}`)
  return `${lines.join('\n')}
done = function(summary, latency, requests)
  local e = summary.errors
  io.write(string.format("BENCH %d %d\\n", summary.requests, e.connect + e.read + e.write + e.status + e.timeout))
end
`
}

function quoteLua(text: string): string {
  return `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
}

const nothingDone = ''

/**
 * Ends the program by `SIGINT` after the seconds, and returns what it printed. On a busy machine, the signal may come
 * before the program handles it. Then it has printed nothing.
 */
async function runUntil(seconds: number, command: readonly string[]): Promise<string> {
  const child = Bun.spawn([...command], { stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  const timer = setTimeout(() => child.kill('SIGINT'), seconds * 1000)
  const [printed, complaint] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  clearTimeout(timer)
  if (child.signalCode === 'SIGINT') return nothingDone
  return `${printed}${complaint}`
}

function expectGood(load: Load, all: string | undefined, bad: string | undefined, printed: string): number {
  if (printed === nothingDone) return 0
  const { pathname } = new URL(load.url)
  if (all === undefined || bad === undefined) throw new Error(`${pathname}: the load generator failed: ${printed}`)
  if (bad !== '0') throw new Error(`${pathname}: ${bad} of ${all} requests failed`)
  return Number(all)
}
