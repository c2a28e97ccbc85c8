// Formats the figures of several sizes as a Markdown table.
import type { Figure } from './measure.ts'
import type { KnownPlan } from './plans.ts'

const nameOf = ({ probe, statement }: Figure) => (statement === undefined ? probe : `${probe}: ${statement}`)

const keyOf = ({ probe, sql }: Figure) => `${probe}\n${sql}`
const isOf = (plan: KnownPlan, { probe, sql }: Figure) => plan.probe === probe && plan.source === sql

/**
 * A statement is not flat if ten times the rows cost twice the time or the pages, and the difference is larger than
 * this. Each of the 100 rows of a list may need a page of its own or none, depending on the last VACUUM.
 */
const noticeableMicros = 200
const noticeablePages = 120

/** Sizes in ascending order. The last two decide, because at the smallest size the pages of lists are not full. */
export function formatFigures(
  bySize: ReadonlyMap<number, readonly Figure[]>,
  plans: ReadonlyMap<number, readonly KnownPlan[]>,
): string {
  const sizes = [...bySize.keys()]
  const named = sizes.map((size) => size.toLocaleString('en-US'))
  // A method may run more statements at one size than at another, so the numbers of its statements may differ.
  const statements = new Map(
    [...bySize.values()].flatMap((figures) => figures.map((figure) => [keyOf(figure), figure])),
  )
  const heading = [
    'statement',
    ...named.map((size) => `p50 / p99 at ${size}`),
    ...named.map((size) => `pages at ${size}`),
    '',
  ]
  const lines = [...statements].map(([key, asked]) => {
    const found = sizes.map((size) => bySize.get(size)?.find((figure) => keyOf(figure) === key))
    const pages = sizes.map((size) => plans.get(size)?.find((plan) => isOf(plan, asked))?.pages)
    return [nameOf(asked), ...found.map(formatFigure), ...pages.map((count) => count ?? ''), judge(found, pages)]
  })
  const rule = heading.map((_, at) => (at === 0 || at === heading.length - 1 ? '---' : '---:'))
  return [heading, rule, ...lines].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

/** The control: a probe that counts the rows of an account. If it looks flat, the measurement proves nothing. */
const control = 'accounts.measure, of the huge account'

export function checkControl(bySize: ReadonlyMap<number, readonly Figure[]>): void {
  const found = [...bySize.values()].map((figures) => figures.find((figure) => nameOf(figure) === control))
  if (found.includes(undefined) || judge(found, []) === 'flat') throw new Error(`the control looks flat: ${control}`)
}

function formatFigure(figure: Figure | undefined): string {
  return figure === undefined ? '' : `${formatMicros(figure.p50)} / ${formatMicros(figure.p99)}`
}

function judge(found: readonly (Figure | undefined)[], pages: readonly (number | undefined)[]): string {
  const isFlat =
    !hasGrown(found.at(-2)?.p50, found.at(-1)?.p50, noticeableMicros) &&
    !hasGrown(pages.at(-2), pages.at(-1), noticeablePages)
  if (isFlat) return 'flat'
  return found.at(-1)?.grows ?? '**not flat**'
}

function hasGrown(before: number | undefined, after: number | undefined, noticeable: number): boolean {
  return before !== undefined && after !== undefined && after > 2 * before && after - before > noticeable
}

function formatMicros(micros: number): string {
  return micros < 10_000 ? `${Math.round(micros)}` : `${Math.round(micros / 1000)} ms`
}
