// One core for the servers, another for the load. On loopback, the thread of either side may do the TCP work of both.
// Without separate cores, the same server needed 0.06 or 0.4 CPU seconds for the same GiB.
import { readFileSync } from 'node:fs'
import { listProcessTree } from './process-cost.ts'

export interface Cores {
  readonly server: number
  readonly load: number
  readonly all: readonly number[]
}

/** Undefined if there is only one core, or no `taskset`. */
export function findCores(): Cores | undefined {
  const all = listAllowedCores()
  const [server, load] = all
  return server === undefined || load === undefined || Bun.which('taskset') === null ? undefined : { server, load, all }
}

/** Servers and load on cores of their own, or both on all cores. The load is this process and what it starts. */
export function applyCores(
  cores: Cores | undefined,
  use: 'apart' | 'shared',
  servers: readonly { readonly pid: number }[],
): void {
  if (cores === undefined) return
  pinProcess(process.pid, use === 'apart' ? [cores.load] : cores.all)
  for (const { pid } of servers) pinTree(pid, use === 'apart' ? [cores.server] : cores.all)
}

/** Moves a process with its children. */
export function pinTree(pid: number, cores: readonly number[]): void {
  for (const member of listProcessTree(pid)) pinProcess(member, cores)
}

/** Moves all threads of the process. Threads and processes that it starts later inherit the cores. */
export function pinProcess(pid: number, cores: readonly number[]): void {
  const list = cores.join(',')
  const { exitCode, stderr } = Bun.spawnSync(['taskset', '--all-tasks', '--cpu-list', '--pid', list, `${pid}`])
  if (exitCode !== 0) throw new Error(`taskset ended with ${exitCode}: ${stderr.toString()}`)
}

function listAllowedCores(): number[] {
  const list = /^Cpus_allowed_list:\s*(\S+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? ''
  return list.split(',').flatMap((range) => {
    const [first = 0, last = first] = range.split('-').map(Number)
    return Array.from({ length: last - first + 1 }, (_, index) => first + index)
  })
}
