// The CPU time and memory of a server, as the kernel counts them, with all threads and child processes.
import { existsSync, readdirSync, readFileSync } from 'node:fs'

/** USER_HZ, the unit of /proc/<pid>/stat: 100 on every architecture that Bun supports, for any CONFIG_HZ. */
const ticksPerSecond = 100

export const canMeasureProcesses = existsSync('/proc/self/stat')

/** utime + stime in seconds, accurate to a hundredth. */
export function readCpuSeconds(pid: number): number {
  const [self = pid, ...others] = listProcessTree(pid)
  // If a child ends between two of these reads, its time is counted for its parent at the next reading.
  return (
    [readTicks(self), ...others.map((member) => unlessGone(() => readTicks(member), 0))].reduce(sum) / ticksPerSecond
  )
}

/** The CPU time of all processes of the machine, including the kernel. */
export function readMachineCpuSeconds(): number {
  const [, user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] = readFileSync('/proc/stat', 'utf8')
    .slice(0, 200)
    .split(/\s+/)
    .map(Number)
  return (user + nice + system + irq + softirq) / ticksPerSecond
}

/** The peak of the resident memory of each process (VmHWM), added up. */
export function readPeakResidentBytes(pid: number): number {
  return readMemory(pid, 'VmHWM')
}

export function readResidentBytes(pid: number): number {
  return readMemory(pid, 'VmRSS')
}

function readMemory(pid: number, field: 'VmHWM' | 'VmRSS'): number {
  return listProcessTree(pid)
    .map((member) => unlessGone(() => readKibibytes(member, field), 0) * 1024)
    .reduce(sum)
}

function readTicks(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // The second field is the command in brackets. It may contain spaces and brackets, so fields are counted from its
  // end.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  // utime and stime, of the process and of its children that have ended.
  return [11, 12, 13, 14].reduce((ticks, index) => ticks + Number(fields[index]), 0)
}

function readKibibytes(pid: number, field: string): number {
  const line = readFileSync(`/proc/${pid}/status`, 'utf8')
    .split('\n')
    .find((each) => each.startsWith(`${field}:`))
  return Number(/\d+/.exec(line ?? '')?.[0] ?? 0)
}

/** The process itself comes first. */
export function listProcessTree(pid: number): number[] {
  const tree = [pid]
  for (const member of tree) {
    for (const thread of unlessGone(() => readdirSync(`/proc/${member}/task`), []))
      tree.push(...readChildren(`/proc/${member}/task/${thread}`))
  }
  return tree
}

// A thread may end between two reads, and some kernels do not have this file.
function readChildren(threadFolder: string): number[] {
  const read = () => readFileSync(`${threadFolder}/children`, 'utf8').split(' ').filter(Boolean).map(Number)
  return unlessGone(read, [])
}

/** A process or thread may end during the reading. */
function unlessGone<T>(read: () => T, otherwise: T): T {
  try {
    return read()
  } catch {
    return otherwise
  }
}

function sum(left: number, right: number): number {
  return left + right
}
