// The figures of several sizes side by side, as markdown.
import type { Figure } from './measure.ts'
import type { KnownPlan } from './plans.ts'

const nameOf = ({ probe, statement }: Figure) => (statement === undefined ? probe : `${probe}: ${statement}`)

const keyOf = ({ probe, sql }: Figure) => `${probe}\n${sql}`
const isOf = (plan: KnownPlan, { probe, sql }: Figure) => plan.probe === probe && plan.source === sql

/**
 * Ten times the rows, twice the time or the pages, and more than this apart: not flat. Each of a list's 100 rows may stand
 * in a page of its own, or in none that has to be looked at, as the last VACUUM will have it.
 */
const noticeableMicros = 200
const noticeablePages = 120

/** Sizes in the order of growth; the last two decide: the smallest is no measure, there pages of lists are not even full. */
export function formatFigures(
  bySize: ReadonlyMap<number, readonly Figure[]>,
  plans: ReadonlyMap<number, readonly KnownPlan[]>,
): string {
  const sizes = [...bySize.keys()]
  const named = sizes.map((size) => size.toLocaleString('en-US'))
  // At one size a method may ask more than at another, so the numbers before its statements may differ.
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

/** The control: it counts an account's rows. A harness to which that looks flat proves nothing about the others. */
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
