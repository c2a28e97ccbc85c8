// A B C A B C ...: every contestant meets every kind of weather, and a ratio is taken inside one round.
import { readCpuSeconds } from './process-cost.ts'

export interface Slice {
  readonly name: string
  readonly pid: number
  /** Of the server that it works through: what that has used is counted to it. */
  readonly helperPid?: number | undefined
  /** What has to be in place before the clock starts. */
  prepare?(): void
  /** Does the work and says how much it was: requests, or bytes. */
  run(): Promise<number>
}

export interface Sample {
  readonly work: number
  /** The helper's among them. */
  readonly cpuSeconds: number
  readonly helperCpuSeconds: number
  readonly wallSeconds: number
}

export type Samples = ReadonlyMap<string, readonly Sample[]>

export interface Spread {
  readonly median: number
  readonly lowest: number
  readonly highest: number
  readonly values: readonly number[]
}

export async function measureRounds(slices: readonly Slice[], rounds: number): Promise<Samples> {
  const samples = new Map<string, Sample[]>(slices.map((slice) => [slice.name, []]))
  for (let round = 1; round <= rounds; round++) {
    for (const slice of slices) samples.get(slice.name)?.push(await measureSlice(slice))
  }
  return samples
}

/** Dividing by a handful of hundredths of a second would print noise as if it were a figure. */
const cpuSecondsMin = 0.095
const attemptsMax = 5

/** A slice in which the server hardly got to run, because somebody else had its core, is measured again. */
async function measureSlice(slice: Slice): Promise<Sample> {
  for (let attempt = 1; attempt <= attemptsMax; attempt++) {
    slice.prepare?.()
    const startedAt = performance.now()
    const before = readCosts(slice)
    const work = await slice.run()
    const wallSeconds = (performance.now() - startedAt) / 1000
    const after = readCosts(slice)
    const helperCpuSeconds = after.helper - before.helper
    const cpuSeconds = after.server - before.server + helperCpuSeconds
    if (cpuSeconds >= cpuSecondsMin) return { work, cpuSeconds, helperCpuSeconds, wallSeconds }
  }
  throw new Error(`${slice.name}: less than ${cpuSecondsMin} CPU seconds in each of ${attemptsMax} slices`)
}

function readCosts({ pid, helperPid }: Slice) {
  return { server: readCpuSeconds(pid), helper: helperPid === undefined ? 0 : readCpuSeconds(helperPid) }
}

export function spreadOf(values: readonly number[]): Spread {
  const sorted = [...values].sort((left, right) => left - right)
  const middle = Math.floor(sorted.length / 2)
  const upper = sorted[middle] ?? Number.NaN
  const lower = sorted.length % 2 === 0 ? (sorted[middle - 1] ?? Number.NaN) : upper
  return {
    median: (lower + upper) / 2,
    lowest: sorted[0] ?? Number.NaN,
    highest: sorted.at(-1) ?? Number.NaN,
    values,
  }
}

/** Work for a CPU second, `subject` as a multiple of `peer`, round by round. */
export function ratioOfYield(samples: Samples, subject: string, peer: string): Spread | undefined {
  return ratioOf(samples, subject, peer, ({ work, cpuSeconds }) => work / cpuSeconds)
}

/** Work for a second of the clock, `subject` as a multiple of `peer`, round by round. */
export function ratioOfSpeed(samples: Samples, subject: string, peer: string): Spread | undefined {
  return ratioOf(samples, subject, peer, ({ work, wallSeconds }) => work / wallSeconds)
}

function ratioOf(
  samples: Samples,
  subject: string,
  peer: string,
  figureOf: (sample: Sample) => number,
): Spread | undefined {
  const peers = samples.get(peer)
  const subjects = samples.get(subject)
  if (peers === undefined || subjects === undefined) return undefined
  return spreadOf(
    subjects.flatMap((sample, round) => {
      const other = peers[round]
      return other === undefined ? [] : [figureOf(sample) / figureOf(other)]
    }),
  )
}

/** CPU seconds for the same work, `subject` as a multiple of `peer`, round by round. */
export function ratioOfCost(samples: Samples, subject: string, peer: string): Spread | undefined {
  const inverse = ratioOfYield(samples, subject, peer)
  return inverse === undefined ? undefined : spreadOf(inverse.values.map((value) => 1 / value))
}
