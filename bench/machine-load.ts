// The neighbours: what to think of a run on a machine that is shared.
import { cpus } from 'node:os'
import { readCpuSeconds, readMachineCpuSeconds } from './process-cost.ts'

const crowdedShare = 0.15

/** How much of the machine others took while we measured. */
export function observeMachineLoad(): () => string {
  const startedAt = performance.now()
  const readOthers = () => readMachineCpuSeconds() - readCpuSeconds(process.pid)
  const before = readOthers()
  return () => {
    const seconds = (performance.now() - startedAt) / 1000
    // The two counts are taken by different clocks and may cross.
    const share = Math.max(0, (readOthers() - before) / seconds / cpus().length)
    const advice = share > crowdedShare ? ' - ROUGH FIGURES: run it again on a quiet machine' : ''
    return `Measured in ${Math.round(seconds)} s; others took ${Math.round(share * 100)} % of the machine${advice}`
  }
}
