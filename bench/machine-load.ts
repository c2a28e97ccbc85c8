// The load of other processes, which decides how far a run on a shared machine can be trusted.
import { cpus } from 'node:os'
import { readCpuSeconds, readMachineCpuSeconds } from './process-cost.ts'

const crowdedShare = 0.15

/** The share of the machine that other processes used during the measurement. */
export function observeMachineLoad(): () => string {
  const startedAt = performance.now()
  const readOthers = () => readMachineCpuSeconds() - readCpuSeconds(process.pid)
  const before = readOthers()
  return () => {
    const seconds = (performance.now() - startedAt) / 1000
    // Different clocks take the two counts, so the difference may be negative.
    const share = Math.max(0, (readOthers() - before) / seconds / cpus().length)
    const advice = share > crowdedShare ? ' - ROUGH FIGURES: run it again on a quiet machine' : ''
    return `Measured in ${Math.round(seconds)} s; others took ${Math.round(share * 100)} % of the machine${advice}`
  }
}
