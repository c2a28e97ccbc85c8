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
