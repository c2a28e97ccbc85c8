// What a server has cost so far, as the kernel counts it: all its threads, and its child processes if it has any.
import { existsSync, readdirSync, readFileSync } from 'node:fs'

/** USER_HZ, the unit of /proc/<pid>/stat: 100 on every architecture Linux runs Bun on, whatever CONFIG_HZ says. */
const ticksPerSecond = 100

export const canMeasureProcesses = existsSync('/proc/self/stat')

/** utime + stime in seconds, good to a hundredth. */
export function readCpuSeconds(pid: number): number {
  const [self = pid, ...others] = listProcessTree(pid)
  // What a child that ends between two of these reads has used counts with its parent the next time.
  return (
    [readTicks(self), ...others.map((member) => unlessGone(() => readTicks(member), 0))].reduce(sum) / ticksPerSecond
  )
}

/** What all processes of the machine together have used, the kernel's own work included. */
export function readMachineCpuSeconds(): number {
  const [, user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] = readFileSync('/proc/stat', 'utf8')
    .slice(0, 200)
    .split(/\s+/)
    .map(Number)
  return (user + nice + system + irq + softirq) / ticksPerSecond
}

/** VmHWM: the most memory the process has ever had resident. */
export function readPeakResidentBytes(pid: number): number {
  return listProcessTree(pid)
    .map((member) => unlessGone(() => readHighWaterMark(member), 0))
    .reduce(sum)
}

function readTicks(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // The second field is the command in brackets and may itself hold blanks and brackets: count from its end.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  // utime, stime, and the same two of children that have ended.
  return [11, 12, 13, 14].reduce((ticks, index) => ticks + Number(fields[index]), 0)
}

function readHighWaterMark(pid: number): number {
  const found = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
  return Number(found?.[1] ?? 0) * 1024
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

// A thread may end between two reads, and a kernel may be built without this file.
function readChildren(threadFolder: string): number[] {
  const read = () => readFileSync(`${threadFolder}/children`, 'utf8').split(' ').filter(Boolean).map(Number)
  return unlessGone(read, [])
}

/** A process or thread may end while we look. */
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
