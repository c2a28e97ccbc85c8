// The figures that a row shows for a contestant.
import { type Sample, spreadOf } from './rounds.ts'

export type Figure = 'CPU ms' | 'CPU s per GiB' | 'per second' | 'MiB per second' | 'MiB'

/** One line of the table: a figure of a row for each contestant. */
export interface Line {
  readonly title: string
  readonly figure: Figure
  readonly values: ReadonlyMap<string, number>
}

const formulas: Readonly<Record<Exclude<Figure, 'MiB'>, (sample: Sample) => number>> = {
  'CPU ms': ({ cpuSeconds, work }) => (cpuSeconds * 1000) / work,
  'CPU s per GiB': ({ cpuSeconds, work }) => cpuSeconds / (work / 2 ** 30),
  'per second': ({ work, wallSeconds }) => work / wallSeconds,
  'MiB per second': ({ work, wallSeconds }) => work / 2 ** 20 / wallSeconds,
}

export function isMoreBetter(figure: Figure): boolean {
  return figure === 'per second' || figure === 'MiB per second'
}

export function valuesOf(figure: Figure, samples: readonly Sample[]): number[] {
  if (figure === 'MiB') throw new Error('memory is not measured in rounds')
  return samples.map(formulas[figure])
}

export function medianOf(figure: Figure, samples: readonly Sample[]): number {
  return spreadOf(valuesOf(figure, samples)).median
}

/** How many times better `left` is than `right`. */
export function advantageOf(figure: Figure, left: number, right: number): number {
  return isMoreBetter(figure) ? left / right : right / left
}
