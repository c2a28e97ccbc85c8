// One core for the servers, another for the load. On loopback, the thread of either side may do the TCP work of both.
// Without separate cores, the same server needed 0.06 or 0.4 CPU seconds for the same GiB.
import { readFileSync } from 'node:fs'

export interface Cores {
  readonly server: number
  readonly load: number
}

/** Undefined if there is only one core, or no `taskset`. */
export function findCores(): Cores | undefined {
  const [server, load] = listAllowedCores()
  return server === undefined || load === undefined || Bun.which('taskset') === null ? undefined : { server, load }
}

/** Moves all threads of the process. Threads and processes that it starts later inherit the core. */
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
