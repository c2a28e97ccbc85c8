// The required ratios (bars), and whether a run meets them.
import { ratioOfCost, ratioOfSpeed, ratioOfYield, type Samples, type Spread } from './rounds.ts'

/**
 * `yield` compares work per CPU second, `speed` work per second (more is better), and `cost` CPU seconds for
 * the same work (less is better).
 */
export type Figure = 'yield' | 'speed' | 'cost'

const ratioOf = { yield: ratioOfYield, speed: ratioOfSpeed, cost: ratioOfCost } as const

export interface Comparison {
  readonly title: string
  readonly subject: string
  readonly peer: string
  readonly figure: Figure
  /** Without a bar, the figure is only printed. */
  readonly bar?: { readonly atLeast: number } | { readonly atMost: number }
}

export interface Verdict {
  readonly comparison: Comparison
  /** Undefined if the peer could not be measured. */
  readonly ratio: Spread | undefined
  readonly outcome: 'PASS' | 'MISS' | 'note'
}

const byReference = ['by tag', 'by digest'] as const

export const manifestComparisons: readonly Comparison[] = [
  ...byReference.map((way): Comparison => {
    const bar = { atLeast: 0.4 }
    return { title: `manifest GET ${way}`, subject: `berth ${way}`, peer: `constant ${way}`, figure: 'yield', bar }
  }),
  ...byReference.map((way): Comparison => {
    const bar = { atLeast: 20 }
    return {
      title: `manifest GET ${way}`,
      subject: `berth ${way}`,
      peer: `docker-registry ${way}`,
      figure: 'yield',
      bar,
    }
  }),
  note('manifest GET by tag', 'berth by tag', 'docker-registry with password, by tag', 'yield'),
  note('manifest GET by tag', 'berth by tag', 'constant (static route)', 'yield'),
]

export const downloadComparisons: readonly Comparison[] = [
  { title: 'blob GET', subject: 'berth', peer: 'bare Bun.file', figure: 'cost', bar: { atMost: 1.3 } },
  note('blob GET', 'berth', 'docker-registry', 'cost'),
]

export const uploadComparisons: readonly Comparison[] = [
  { title: 'blob upload', subject: 'berth', peer: 'bare loop', figure: 'cost', bar: { atMost: 1.5 } },
  note('blob upload', 'berth', 'docker-registry', 'cost'),
  note('blob upload by PATCH', 'berth by PATCH', 'bare loop', 'cost'),
]

function note(title: string, subject: string, peer: string, figure: Figure): Comparison {
  return { title, subject, peer, figure }
}

export function judge(comparisons: readonly Comparison[], samples: Samples): Verdict[] {
  return comparisons.flatMap((comparison) => {
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
