// The figures of several sizes side by side, as markdown.
import type { Figure } from './measure.ts'

const nameOf = ({ probe, statement }: Figure) => (statement === undefined ? probe : `${probe}: ${statement}`)

/**
 * Ten times the rows, twice the time, and more than this apart: not flat. The smallest size is no measure of that: there,
 * pages are not even full.
 */
const noticeableMicros = 200

export function formatFigures(bySize: ReadonlyMap<number, readonly Figure[]>): string {
  const sizes = [...bySize.keys()]
  const names = [...new Set([...bySize.values()].flatMap((figures) => figures.map(nameOf)))]
  const heading = ['statement', ...sizes.map((size) => size.toLocaleString('en-US')), 'last : middle']
  const lines = names.map((name) => {
    const found = sizes.map((size) => bySize.get(size)?.find((figure) => nameOf(figure) === name))
    return [name, ...found.map((figure) => (figure === undefined ? '' : formatFigure(figure))), judge(found)]
  })
  return [heading, heading.map((_, at) => (at === 0 ? '---' : '---:')), ...lines]
    .map((cells) => `| ${cells.join(' | ')} |`)
    .join('\n')
}

function formatFigure({ p50, p99 }: Figure): string {
  return `${formatMicros(p50)} / ${formatMicros(p99)}`
}

function judge(found: readonly (Figure | undefined)[]): string {
  const [first, last] = [found.at(-2), found.at(-1)]
  if (first === undefined || last === undefined) return ''
  const ratio = last.p50 / first.p50
  const isFlat = ratio < 2 || last.p50 - first.p50 < noticeableMicros
  return `${ratio.toFixed(1)}${isFlat ? '' : last.grows === undefined ? ' **not flat**' : ' grows'}`
}

function formatMicros(micros: number): string {
  return micros < 10_000 ? `${Math.round(micros)}` : `${Math.round(micros / 1000)} ms`
}
