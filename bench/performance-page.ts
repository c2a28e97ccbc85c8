// Writes docs/reference/performance.md.
import { availableParallelism } from 'node:os'
import type { Verdict } from './bars.ts'
import { advantageOf, type Line, medianOf } from './figures.ts'
import { berthName } from './registries.ts'
import { formatVerdict } from './report.ts'
import { limitNames, type MeasuredRow } from './rows/row.ts'
import { listTargets } from './targets.ts'

export interface Results {
  readonly measured: readonly MeasuredRow[]
  /** Figures that are not taken in rounds. */
  readonly otherLines: readonly Line[]
  readonly verdicts: readonly Verdict[]
  readonly workers: readonly number[]
  readonly day: string
  /** How much of the machine other processes used. */
  readonly machineLoad: string
}

export function formatPage(results: Results): string {
  const lines = [...results.measured.flatMap(linesOf), ...results.otherLines]
  const berths = results.workers.map(berthName)
  const names = [...new Set(lines.flatMap(({ values }) => [...values.keys()]))]
  const peers = names.filter((name) => !berths.includes(name) && !limitNames.includes(name))
  return [
    `# Performance

This page is the output of \`npm run bench\` of ${results.day}. Every figure is from this one run.

## What was measured

- Berth runs with its defaults: it checks credentials, writes an access log, and syncs uploads to the disk. It is measured with
  ${berths.map((name) => name.replace('Berth, ', '')).join(' and with ')}, on its embedded stores.
- The other registries run **without** credentials, access log and fsync, which is in their favour. \`zot with fsync\` is an
  exception, and is measured with uploads at once only.
- The machine has ${availableParallelism()} cores, which the servers and the load share. ${results.machineLoad}
- A figure is the median of several rounds. In each round, all contestants do the same work, one after the other.
- CPU time is the user and system time of all processes of a contestant.
- For rows that show only CPU time, the servers have one core and the load has another. For the other rows, both use all cores.
- A limit is a small server that does only what no registry can avoid. \`constant answer\` is a \`Bun.serve\` that returns the same
  manifest, \`bare Bun.file\` sends one file, and \`bare upload\` reads a body, hashes it, writes it and syncs it.`,
    `## Figures\n\n${formatFigures(lines, [...berths, ...peers])}`,
    ...berths.map(
      (berth) =>
        `## Ratios: ${berth}\n\nHow many times better ${berth} is. Below 1, the other registry is better.\n\n${formatRatios(lines, berth, peers)}`,
    ),
    `## Targets\n\n${formatTargets(lines, berths, peers)}`,
    `## Bars\n\nA bar compares ${berthName(1)} with a limit or with docker-registry, as the median of the ratios of all rounds.\n
\`\`\`text\n${results.verdicts.map((verdict) => formatVerdict(verdict)).join('\n')}\n\`\`\``,
    `## How the load was made\n\n${results.measured.map(({ row }) => `- ${row.title}: ${row.detail}.`).join('\n')}`,
    `## Limits of these figures

- The load runs on the same machine. For rows that show speed, it takes CPU time from the servers.
- There is no network between client and server, and one disk for all.
- The figures of \`zb\` are medians of three runs of each server, with ten requests for each test.
- Memory is the sum of the resident memory of all processes. Pages that processes share count for each of them.

## How to repeat

    npm run bench -- --zot <path> --distribution <path> --olareg <path> --zb <path>

Each path leads to a program of that project. A peer without a path is left out. docker-registry is measured if it is installed.
[Benchmarks](../../bench/README.md) describes the method, [Scale](../design/scale.md) how the figures change with the size of a
registry, and [Limits of speed](../design/limits-of-speed.md) what limits the targets that were missed.
`,
  ].join('\n\n')
}

function linesOf({ row, samples }: MeasuredRow): Line[] {
  return row.figures.map((figure) => ({
    title: row.title,
    figure,
    values: new Map([...samples].map(([name, taken]) => [name, medianOf(figure, taken)])),
  }))
}

function formatFigures(lines: readonly Line[], columns: readonly string[]): string {
  const rows = lines.map(({ title, figure, values }) => {
    const limits = limitNames.flatMap((name) => (values.has(name) ? [`${digits(values.get(name))} (${name})`] : []))
    return [`${title}, ${figure}`, ...columns.map((name) => digits(values.get(name))), limits.join(', ')]
  })
  return formatTable(['', ...columns, 'limit'], rows)
}

function formatRatios(lines: readonly Line[], berth: string, peers: readonly string[]): string {
  const rows = lines.map(({ title, figure, values }) => {
    const own = values.get(berth)
    const ratios = peers.map((peer) => {
      const other = values.get(peer)
      return own === undefined || other === undefined
        ? ''
        : `${Number(advantageOf(figure, own, other).toPrecision(2))}x`
    })
    return [`${title}, ${figure}`, ...ratios]
  })
  return formatTable(['', ...peers], rows)
}

function formatTargets(lines: readonly Line[], berths: readonly string[], peers: readonly string[]): string {
  const outcome = { true: 'met', false: '**missed**', undefined: 'not measured' } as const
  const rows = listTargets(lines).map(({ title, figure, text, isMet }) => {
    const line = lines.find((each) => each.title === title && each.figure === figure)
    const verdicts = berths.map((berth) => {
      const value = line?.values.get(berth)
      return line === undefined ? outcome.undefined : `${digits(value)}: ${outcome[`${isMet(line, berth, peers)}`]}`
    })
    return [`${title}, ${figure}`, text, ...verdicts]
  })
  return formatTable(['', 'target', ...berths], rows)
}

function formatTable(heading: readonly string[], rows: readonly (readonly string[])[]): string {
  const rule = heading.map((_, index) => (index === 0 ? '---' : '---:'))
  return [heading, rule, ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

function digits(value: number | undefined): string {
  if (value === undefined) return ''
  return value >= 100 ? Math.round(value).toLocaleString('en-US') : `${Number(value.toPrecision(2))}`
}
