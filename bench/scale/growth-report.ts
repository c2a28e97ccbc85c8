// The table of the growth, with a verdict for each row, and its section of docs/design/scale.md.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const pagePath = join(import.meta.dir, '..', '..', 'docs', 'design', 'scale.md')

export interface GrowthRow {
  readonly title: string
  /** One for each size, in ascending order. A small registry may have too little for a row. */
  readonly values: readonly (number | undefined)[]
  /** Without it, the row must be flat. */
  readonly atMost?: number
}

/** A row is flat if the largest registry costs at most so many times as much as the smallest. */
const growthMax = 1.3

/** Replaces the section, up to the next heading of the page. */
export function writeGrowthSection(table: string, machineLoad: string): void {
  const page = readFileSync(pagePath, 'utf8')
  const section = /### A server on SQLite\n.*?(?=\n## )/s
  if (!section.test(page)) throw new Error(`${pagePath} has no section "A server on SQLite"`)
  const day = new Date().toISOString().slice(0, 10)
  writeFileSync(
    pagePath,
    page.replace(section, () => formatSection(table, day, machineLoad)),
  )
}

function formatSection(table: string, day: string, machineLoad: string): string {
  return `### A server on SQLite

\`run growth\` writes this section. It starts three servers, on copies of the registries of 1,000, 100,000 and 1,000,000
manifests. It sends the same requests to each of them in turn, and measures the CPU time of the server: reads of 100
manifests, which are answered from memory, and of 2,000 manifests, most of which are read from the database; lists; pushes
into the largest repository; deletions; the collection of garbage; the start; and the idle memory. A row is flat if the
largest registry costs at most ${growthMax} times as much as the smallest. A start must take at most 0.5 s.

This table is from ${day}. ${machineLoad}.

${table}
`
}

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
