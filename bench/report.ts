// Formats the results of a run.
import type { Verdict } from './bars.ts'
import { valuesOf } from './figures.ts'
import { type Sample, type Samples, type Spread, spreadOf } from './rounds.ts'
import type { Row } from './rows/row.ts'

const gibibyte = 2 ** 30
const mebibyte = 2 ** 20

type Column = readonly [title: string, format: (samples: readonly Sample[]) => string]

const fleetRequestColumns: readonly Column[] = [
  ['requests a second (lowest-highest)', (samples) => formatSpread(samples.map(workPerWallSecond), count)],
  ['CPU ms a request', (samples) => milliseconds(spreadOf(samples.map(cpuSecondsPerWork)).median)],
  ["PostgreSQL's among them", (samples) => milliseconds(spreadOf(samples.map(helperSecondsPerWork)).median)],
]

const fleetByteColumns: readonly Column[] = [
  ['MiB a second (lowest-highest)', (samples) => formatSpread(samples.map(mebibytesPerWallSecond), count)],
  ['CPU seconds a GiB', (samples) => decimal(spreadOf(samples.map(cpuSecondsPerGibibyte)).median)],
  ["PostgreSQL's among them", (samples) => decimal(spreadOf(samples.map(helperSecondsPerWork)).median * gibibyte)],
]

export function formatFleetTable(title: string, samples: Samples, unit: 'requests' | 'bytes'): string {
  return formatTable(title, samples, unit === 'requests' ? fleetRequestColumns : fleetByteColumns)
}

/** A row with the median, the lowest and the highest figure of each contestant. */
export function formatSamples({ title, detail, figures }: Row, samples: Samples): string {
  const rounds = Math.max(...[...samples.values()].map((taken) => taken.length))
  const columns = figures.map(
    (figure): Column => [figure, (taken) => formatSpread(valuesOf(figure, taken), (value) => value.toPrecision(3))],
  )
  return formatTable(`${title} (${detail}; ${rounds} rounds)`, samples, columns)
}

function formatTable(title: string, samples: Samples, columns: readonly Column[]): string {
  const rows = [...samples].map(([name, taken]) => [name, ...columns.map(([, format]) => format(taken))])
  return [title, ...alignRows([['', ...columns.map(([heading]) => heading)], ...rows])].join('\n')
}

export function formatMemory(peaks: readonly (readonly [name: string, bytes: number])[]): string {
  const rows = peaks.map(([name, bytes]) => [name, `${count(bytes / mebibyte)} MiB`])
  return ['Peak resident memory over the whole run', ...alignRows(rows)].join('\n')
}

const units = { yield: 'work per CPU second', speed: 'speed', cost: 'CPU' } as const

export function formatVerdict({ comparison, ratio, outcome }: Verdict): string {
  const { title, subject, peer, figure, bar } = comparison
  const asked =
    bar === undefined ? '' : 'atLeast' in bar ? `; bar: at least ${bar.atLeast}x` : `; bar: at most ${bar.atMost}x`
  const unit = units[figure]
  const what = `${outcome}  ${title}: ${subject} against ${peer}: `
  if (ratio === undefined) return `${what}not measured, since ${peer} is not here${asked}`
  const rounds = ratio.values.map((value) => digits(value)).join(' ')
  return `${what}${digits(ratio.median)}x the ${unit} (rounds: ${rounds})${asked}`
}

function alignRows(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  return rows.map((row) =>
    row
      .map((cell, column) =>
        column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart((widths[column] ?? 0) + 3),
      )
      .join('')
      .replace(/^/, '  '),
  )
}

function formatSpread(values: readonly number[], format: (value: number) => string): string {
  const spread: Spread = spreadOf(values)
  return `${format(spread.median)} (${format(spread.lowest)}-${format(spread.highest)})`
}

function workPerWallSecond(sample: Sample): number {
  return sample.work / sample.wallSeconds
}

function mebibytesPerWallSecond(sample: Sample): number {
  return workPerWallSecond(sample) / mebibyte
}

function cpuSecondsPerWork(sample: Sample): number {
  return sample.cpuSeconds / sample.work
}

function helperSecondsPerWork(sample: Sample): number {
  return sample.helperCpuSeconds / sample.work
}

function cpuSecondsPerGibibyte(sample: Sample): number {
  return sample.cpuSeconds / (sample.work / gibibyte)
}

function count(value: number): string {
  return Math.round(value).toLocaleString('en-US')
}

function milliseconds(seconds: number): string {
  return (seconds * 1000).toFixed(3)
}

function decimal(value: number): string {
  return value.toFixed(3)
}

/** Three significant digits: 0.397 must not look like the required 0.4. */
function digits(value: number): string {
  return value.toPrecision(3)
}
