// Many small GETs over keep-alive connections, one request at a time on each: by `wrk`, or by `raw-load.ts` without it.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Load, runRawLoad } from './raw-load.ts'

export interface LoadGenerator {
  readonly name: string
  /** Returns the number of good responses. One bad response is an error. */
  run(load: Load): Promise<number>
}

export function chooseLoadGenerator(folder: string): LoadGenerator {
  const wrk = Bun.which('wrk')
  if (wrk === null) return { name: 'own client (wrk is not installed)', run: runRawLoad }
  // After a HEAD, wrk waits for the body that `Content-Length` announces.
  return { name: 'wrk', run: (load) => (load.method === 'HEAD' ? runRawLoad(load) : runWrk(wrk, folder, load)) }
}

async function runWrk(wrk: string, folder: string, load: Load): Promise<number> {
  const script = join(folder, 'load.lua')
  writeFileSync(script, wrkScript(load.headers))
  const { pathname } = new URL(load.url)
  // wrk accepts whole seconds only. `SIGINT` ends it earlier; its own limit applies if this process is killed.
  const duration = `${Math.ceil(load.seconds) + 1}s`
  const child = Bun.spawn(
    [
      wrk,
      '--threads',
      '1',
      '--connections',
      `${load.connections}`,
      '--duration',
      duration,
      '--script',
      script,
      load.url,
    ],
    { stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' },
  )
  const timer = setTimeout(() => child.kill('SIGINT'), load.seconds * 1000)
  const [printed, complaint, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  clearTimeout(timer)
  const found = /^BENCH (\d+) (\d+)$/m.exec(printed)
  if (code !== 0 || found === null) throw new Error(`wrk ended with ${code}: ${printed}${complaint}`)
  if (found[2] !== '0') throw new Error(`${pathname}: ${found[2]} of ${found[1]} requests failed`)
  return Number(found[1])
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
