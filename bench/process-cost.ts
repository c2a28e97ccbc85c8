// What a server has cost so far, as the kernel counts it: all its threads, and its child processes if it has any.
import { existsSync, readdirSync, readFileSync } from 'node:fs'

/** USER_HZ, the unit of /proc/<pid>/stat: 100 on every architecture Linux runs Bun on, whatever CONFIG_HZ says. */
const ticksPerSecond = 100

export const canMeasureProcesses = existsSync('/proc/self/stat')

/** utime + stime in seconds, good to a hundredth. */
export function readCpuSeconds(pid: number): number {
  return listProcessTree(pid).reduce((sum, member) => sum + readTicks(member), 0) / ticksPerSecond
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
  return listProcessTree(pid).reduce((sum, member) => sum + readHighWaterMark(member), 0)
}

function readTicks(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // The second field is the command in brackets and may itself hold blanks and brackets: count from its end.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  // utime, stime, and the same two of children that have ended.
  return [11, 12, 13, 14].reduce((sum, index) => sum + Number(fields[index]), 0)
}

function readHighWaterMark(pid: number): number {
  const found = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
  return Number(found?.[1] ?? 0) * 1024
}

function listProcessTree(pid: number): number[] {
  const tree = [pid]
  for (const member of tree) {
    for (const thread of readdirSync(`/proc/${member}/task`))
      tree.push(...readChildren(`/proc/${member}/task/${thread}`))
  }
  return tree
}

function readChildren(threadFolder: string): number[] {
  try {
    return readFileSync(`${threadFolder}/children`, 'utf8').split(' ').filter(Boolean).map(Number)
  } catch {
    // A thread may end between the two reads, and a kernel may be built without this file.
    return []
  }
}
