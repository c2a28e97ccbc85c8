// The ratios of an earlier run. They find a change that makes Berth much slower, on any machine.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { comparisons } from './bars.ts'
import { ratioOfYield } from './rounds.ts'
import type { MeasuredRow } from './rows/row.ts'

const path = join(import.meta.dir, 'stored-ratios.json')

/** Less than this share of the stored ratio is a failure. Ratios of one program differ by a third on a busy machine. */
const shareMin = 0.5

/** By the row and the peer: the work per CPU second of Berth, divided by that of the peer. More is better. */
type Ratios = Readonly<Record<string, number>>

export function computeRatios(measured: readonly MeasuredRow[]): Ratios {
  const samples = new Map(measured.map((each) => [each.row.title, each.samples]))
  return Object.fromEntries(
    comparisons.flatMap(({ title, subject, peer }) => {
      const taken = samples.get(title)
      const ratio = taken && ratioOfYield(taken, subject, peer)?.median
      return ratio === undefined ? [] : [[`${title} / ${peer}`, Number(ratio.toPrecision(3))]]
    }),
  )
}

export function storeRatios(measured: readonly MeasuredRow[]): void {
  writeFileSync(path, `${JSON.stringify(computeRatios(measured), null, 2)}\n`)
}

export interface Regression {
  readonly text: string
  readonly isGood: boolean
}

/** A stored ratio that is not measured is a failure. */
export function compareWithStored(measured: readonly MeasuredRow[]): Regression[] {
  const stored: Ratios = JSON.parse(readFileSync(path, 'utf8'))
  const now = computeRatios(measured)
  return Object.entries(stored).map(([name, before]) => {
    const ratio = now[name]
    const isGood = ratio !== undefined && ratio >= before * shareMin
    return { isGood, text: `${name}: ${ratio ?? 'not measured'}, stored ${before}` }
  })
}
