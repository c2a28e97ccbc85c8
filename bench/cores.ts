// One core for the servers, another for the load. On loopback either side's thread may end up doing the TCP work of
// both: left to the scheduler, one and the same server was seen to need 0.06 or 0.4 CPU seconds for the same GiB.
import { readFileSync } from 'node:fs'

export interface Cores {
  readonly server: number
  readonly load: number
}

/** Undefined where there is one core only, or no `taskset`. */
export function findCores(): Cores | undefined {
  const [server, load] = listAllowedCores()
  return server === undefined || load === undefined || Bun.which('taskset') === null ? undefined : { server, load }
}

/** All threads of the process; threads and processes that it starts later follow. */
export function pinProcess(pid: number, core: number): void {
  const { exitCode, stderr } = Bun.spawnSync(['taskset', '--all-tasks', '--cpu-list', '--pid', `${core}`, `${pid}`])
  if (exitCode !== 0) throw new Error(`taskset ended with ${exitCode}: ${stderr.toString()}`)
}

function listAllowedCores(): number[] {
  const list = /^Cpus_allowed_list:\s*(\S+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? ''
  return list.split(',').flatMap((range) => {
    const [first = 0, last = first] = range.split('-').map(Number)
    return Array.from({ length: last - first + 1 }, (_, index) => first + index)
  })
}
