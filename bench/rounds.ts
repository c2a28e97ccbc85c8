// Runs the contestants in turn (A B C A B C ...), so that other load affects all of them. Ratios are computed in one
// round.
import { readCpuSeconds } from './process-cost.ts'

export interface Slice {
  readonly name: string
  readonly pid: number
  /** A server that the contestant uses. Its CPU time is counted for the contestant. */
  readonly helperPid?: number | undefined
  /** Prepares the work before the measurement begins. */
  prepare?(): void | Promise<void>
  /** Does the work, and returns its amount: requests or bytes. */
  run(): Promise<number>
}

export interface Sample {
  readonly work: number
  /** Includes the CPU time of the helper. */
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

/** A median needs at least three values. */
const roundsMin = 3

/** After `secondsMax`, it ends with the next complete round. */
export async function measureRounds(
  slices: readonly Slice[],
  rounds: number,
  secondsMax = Number.POSITIVE_INFINITY,
): Promise<Samples> {
  const samples = new Map<string, Sample[]>(slices.map((slice) => [slice.name, []]))
  const deadline = performance.now() + secondsMax * 1000
  for (let round = 1; round <= rounds; round++) {
    if (round > roundsMin && performance.now() > deadline) break
    for (const slice of slices) samples.get(slice.name)?.push(await measureSlice(slice))
  }
  return samples
}

/** With fewer hundredths of a second, the quotient would be noise. */
const cpuSecondsMin = 0.095
const runsMax = 100

/** The work is repeated until it has taken enough CPU time. On a busy machine, one run may take too little. */
async function measureSlice(slice: Slice): Promise<Sample> {
  const sum = { work: 0, cpuSeconds: 0, helperCpuSeconds: 0, wallSeconds: 0 }
  for (let runs = 0; runs < runsMax && (sum.work === 0 || sum.cpuSeconds < cpuSecondsMin); runs++) {
    await slice.prepare?.()
    const startedAt = performance.now()
    const before = readCosts(slice)
    sum.work += await slice.run()
    const after = readCosts(slice)
    const helperCpuSeconds = after.helper - before.helper
    sum.wallSeconds += (performance.now() - startedAt) / 1000
    sum.helperCpuSeconds += helperCpuSeconds
    sum.cpuSeconds += after.server - before.server + helperCpuSeconds
  }
  if (sum.work === 0 || sum.cpuSeconds < cpuSecondsMin)
    throw new Error(`${slice.name}: ${sum.cpuSeconds} CPU seconds for ${sum.work} units of work are too few`)
  return sum
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

/** Work per CPU second: `subject` divided by `peer`, for each round. */
export function ratioOfYield(samples: Samples, subject: string, peer: string): Spread | undefined {
  return ratioOf(samples, subject, peer, ({ work, cpuSeconds }) => work / cpuSeconds)
}

/** Work per second: `subject` divided by `peer`, for each round. */
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

/** CPU seconds for the same work: `subject` divided by `peer`, for each round. */
export function ratioOfCost(samples: Samples, subject: string, peer: string): Spread | undefined {
  const inverse = ratioOfYield(samples, subject, peer)
  return inverse === undefined ? undefined : spreadOf(inverse.values.map((value) => 1 / value))
}
