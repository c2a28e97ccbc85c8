// What Berth shall reach, with credentials, access log and fsync on.
import { advantageOf, type Figure, isMoreBetter, type Line } from './figures.ts'
import { idleOfProcessTitle, peakTitle } from './memory.ts'
import { syncingZotName, zotName } from './registries.ts'
import { isZbLine } from './zb.ts'

export interface Target {
  readonly title: string
  readonly figure: Figure
  readonly text: string
  /** Undefined if a needed figure was not measured. */
  isMet(line: Line, berth: string, peers: readonly string[]): boolean | undefined
}

/** In its own unit, whether more or less is better. */
function limit(title: string, figure: Figure, bound: number): Target {
  const text = `${isMoreBetter(figure) ? 'at least' : 'at most'} ${bound} ${figure}`
  return {
    title,
    figure,
    text,
    isMet: ({ values }, berth) => {
      const value = values.get(berth)
      return value === undefined ? undefined : isMoreBetter(figure) ? value >= bound : value <= bound
    },
  }
}

/** So many times better than the best of some peers. */
function lead(title: string, figure: Figure, times: number, over?: string): Target {
  return {
    title,
    figure,
    text: `at least ${times}x ${over ?? 'the best peer'}`,
    isMet: ({ values }, berth, peers) => {
      const value = values.get(berth)
      const others = (over === undefined ? peers : [over]).flatMap((name) => values.get(name) ?? [])
      if (value === undefined || others.length === 0) return undefined
      return others.every((other) => advantageOf(figure, value, other) >= times)
    },
  }
}

const smallReads = ['manifest GET by tag', 'manifest GET by digest', 'manifest HEAD', 'blob HEAD', 'blob GET of 1 KiB']
const images = ['small images, POST and PUT', 'small images, POST, PATCH and PUT']

export function listTargets(lines: readonly Line[]): Target[] {
  return [
    ...smallReads.flatMap((title) => [limit(title, 'CPU ms', 0.02), lead(title, 'CPU ms', 2)]),
    lead('blob GET of 1 MiB', 'CPU ms', 1),
    limit('upload of 512 MiB by PUT', 'CPU s per GiB', 1.4),
    limit('upload of 512 MiB by PATCH', 'CPU s per GiB', 1.4),
    lead('8 uploads of 64 MiB at once', 'MiB per second', 1.1, syncingZotName),
    ...images.flatMap((title) => [limit(title, 'per second', 400), limit(title, 'CPU ms', 2)]),
    ...lines.filter(isZbLine).map(({ title, figure }) => lead(title, figure, 1, zotName)),
    limit(idleOfProcessTitle, 'MiB', 60),
    limit(peakTitle, 'MiB', 250),
  ]
}
