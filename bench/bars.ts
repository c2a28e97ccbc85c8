// The required ratios (bars), and whether a run meets them.
import { berthName, dockerRegistryName } from './registries.ts'
import { ratioOfCost, ratioOfSpeed, ratioOfYield, type Samples, type Spread } from './rounds.ts'
import { bareFileName, bareUploadName, constantName, type MeasuredRow } from './rows/row.ts'

/**
 * `yield` compares work per CPU second, `speed` work per second (more is better), and `cost` CPU seconds for
 * the same work (less is better).
 */
export type RatioKind = 'yield' | 'speed' | 'cost'

const ratioOf = { yield: ratioOfYield, speed: ratioOfSpeed, cost: ratioOfCost } as const

export interface Comparison {
  readonly title: string
  readonly subject: string
  readonly peer: string
  readonly figure: RatioKind
  /** Without a bar, the figure is only printed. */
  readonly bar?: { readonly atLeast: number } | { readonly atMost: number }
}

export interface Verdict {
  readonly comparison: Comparison
  /** Undefined if the peer could not be measured. */
  readonly ratio: Spread | undefined
  readonly outcome: 'PASS' | 'MISS' | 'note'
}

const subject = berthName(1)

/** Each title is the title of a row. */
export const comparisons: readonly Comparison[] = [
  ...['manifest GET by tag', 'manifest GET by digest'].flatMap((title): Comparison[] => [
    { title, subject, peer: constantName, figure: 'yield', bar: { atLeast: 0.4 } },
    { title, subject, peer: dockerRegistryName, figure: 'yield', bar: { atLeast: 20 } },
  ]),
  { title: 'blob GET of 512 MiB', subject, peer: bareFileName, figure: 'cost', bar: { atMost: 1.3 } },
  { title: 'upload of 512 MiB by PUT', subject, peer: bareUploadName, figure: 'cost', bar: { atMost: 1.5 } },
  ...[
    'blob HEAD',
    'blob GET of 1 KiB',
    'blob GET of 512 MiB',
    'upload of 512 MiB by PUT',
    'small images, POST and PUT',
  ].map((title): Comparison => ({ title, subject, peer: dockerRegistryName, figure: 'yield' })),
]

/** A bar that was not measured counts as missed. */
export function judgeRows(measured: readonly MeasuredRow[]): Verdict[] {
  const samples = new Map(measured.map((each) => [each.row.title, each.samples]))
  return comparisons.flatMap((each) => judge([each], samples.get(each.title) ?? new Map()))
}

export function judge(judged: readonly Comparison[], samples: Samples): Verdict[] {
  return judged.flatMap((comparison) => {
    const ratio = ratioOf[comparison.figure](samples, comparison.subject, comparison.peer)
    // A note about an absent peer is left out. A bar that was not measured counts as missed.
    if (comparison.bar === undefined && ratio === undefined) return []
    return [{ comparison, ratio, outcome: decide(comparison, ratio) }]
  })
}

function decide({ bar }: Comparison, ratio: Spread | undefined): Verdict['outcome'] {
  if (bar === undefined) return 'note'
  if (ratio === undefined) return 'MISS'
  // With this order, NaN counts as missed.
  const met = 'atLeast' in bar ? ratio.median >= bar.atLeast : ratio.median <= bar.atMost
  return met ? 'PASS' : 'MISS'
}
