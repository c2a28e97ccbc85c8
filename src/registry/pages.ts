/** Which part of a list is wanted. Without a limit: all of it. */
export interface PageRequest {
  readonly after: string | undefined
  readonly limit: number | undefined
}

export interface Page<T> {
  readonly items: readonly T[]
  readonly hasMore: boolean
}

/** One more than wanted was asked for, to learn whether there is more without counting. */
export function toPage<T>(found: readonly T[], limit: number): Page<T> {
  return { items: found.slice(0, limit), hasMore: found.length > limit }
}
