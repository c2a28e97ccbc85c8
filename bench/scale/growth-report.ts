// The table of the growth, with a verdict for each row.

export interface GrowthRow {
  readonly title: string
  /** One for each size, in ascending order. A small registry may have too little for a row. */
  readonly values: readonly (number | undefined)[]
  /** Without it, the row must be flat. */
  readonly atMost?: number
}

/** A row is flat if the largest registry costs at most so many times as much as the smallest. */
const growthMax = 1.3

export function formatGrowth(sizes: readonly number[], rows: readonly GrowthRow[]): string {
  const heading = ['', ...sizes.map((size) => `${size.toLocaleString('en-US')} manifests`), 'growth', '']
  const rule = heading.map((_, index) => (index === 0 || index === heading.length - 1 ? '---' : '---:'))
  const lines = rows.map((row) => {
    const growth = growthOf(row)
    return [row.title, ...row.values.map((value) => formatValue(value)), `${growth.toFixed(2)}x`, judge(row)]
  })
  return [heading, rule, ...lines].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

function growthOf({ values }: GrowthRow): number {
  const measured = values.filter((value) => value !== undefined)
  return (measured.at(-1) ?? Number.NaN) / (measured[0] ?? Number.NaN)
}

function formatValue(value: number | undefined): string {
  return value === undefined ? '' : `${Number(value.toPrecision(3))}`
}

function judge(row: GrowthRow): string {
  const { values, atMost } = row
  if (atMost !== undefined)
    return values.every((value) => value === undefined || value <= atMost) ? `below ${atMost}` : `**above ${atMost}**`
  // A difference of two measurements may be less than their noise.
  if (values.some((value) => value !== undefined && value <= 0)) return 'too little to measure'
  return growthOf(row) <= growthMax ? 'flat' : '**not flat**'
}
