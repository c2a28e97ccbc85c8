import { readFileSync } from 'node:fs'

/** The most memory that a process has ever had resident (Linux: `VmHWM`). */
export function peakMemoryBytes(pid: number): number {
  const kibibytes = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  if (kibibytes === undefined) throw new Error('the kernel does not tell the peak of memory')
  return Number(kibibytes) * 1024
}
