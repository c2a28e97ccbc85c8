import type { RowId } from '../ports/row-id.ts'

/** The part of a list that a client requests. Undefined `limit`: no limit was given. */
export interface PageRequest {
  readonly after: string | undefined
  readonly limit: number | undefined
}

export interface Page<T> {
  readonly items: readonly T[]
  readonly hasMore: boolean
}

/** `items`: one more than `limit` were read, to learn whether there are more without counting them. */
export function toPage<T>(items: readonly T[], limit: number): Page<T> {
  return { items: items.slice(0, limit), hasMore: items.length > limit }
}

/** The place of a row in a list that is ordered by time: `last` of a page, or a mark of the collector. */
export function formatPosition(time: number, id: RowId): string {
  return `${time}-${id}`
}

/** The inverse of `formatPosition`. A text that is no position means the first one. */
export function parsePosition<Position>(
  text: string | undefined,
  toPosition: (time: number, id: RowId) => Position,
): Position | undefined {
  const [, time, id] = /^(\d{1,16})-(\d{1,16})$/.exec(text ?? '') ?? []
  return time === undefined || id === undefined ? undefined : toPosition(Number(time), Number(id))
}
