// Many small requests over keep-alive connections, one request at a time on each. `wrk` sends GET, `ab` sends HEAD, and
// `raw-load.ts` sends both if these programs are not installed.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Load, runRawLoad } from './raw-load.ts'

export interface LoadGenerator {
  nameOf(method: 'GET' | 'HEAD'): string
  /** Returns the number of good responses. One bad response is an error. */
  run(load: Load): Promise<number>
}

type Program = (path: string, folder: string, load: Load) => Promise<number>

export function chooseLoadGenerator(folder: string): LoadGenerator {
  // After a HEAD, wrk waits for the body that `Content-Length` announces.
  const programs = { GET: findProgram('wrk', runWrk, folder), HEAD: findProgram('ab', runAb, folder) }
  return {
    nameOf: (method) => programs[method].name,
    run: (load) => programs[load.method ?? 'GET'].run(load),
  }
}

function findProgram(name: string, run: Program, folder: string) {
  const path = Bun.which(name)
  if (path === null) return { name: `own client (${name} is not installed)`, run: runRawLoad }
  return { name, run: (load: Load) => run(path, folder, load) }
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
const abRequestsMax = 1_000_000

async function runAb(ab: string, _folder: string, load: Load): Promise<number> {
  const headers = Object.entries(load.headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`])
  const numbers = ['-c', `${load.connections}`, '-n', `${abRequestsMax}`, '-t', `${Math.ceil(load.seconds) + 1}`]
  // `-i` sends HEAD, `-k` keeps the connections, and `SIGINT` prints the figures of the requests so far.
  const printed = await runUntil(load.seconds, [ab, '-q', '-i', '-k', ...numbers, ...headers, load.url])
  const bad = /^Non-2xx responses: +(\d+)$/m.exec(printed)?.[1] ?? '0'
  return expectGood(load, /^Complete requests: +(\d+)$/m.exec(printed)?.[1], bad, printed)
}

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
