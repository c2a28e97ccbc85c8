// A database that measures the time of each statement while it is watched, and marks these statements in the server's
// log.

import type { Database } from '../../src/adapters/metadata-sql/database.ts'
import type { Awaitable } from '../../src/ports/awaitable.ts'
import { hookDatabase } from '../../test/support/stores/hooked-database.ts'

export interface Taken {
  /** The statement as in the source, with its macros. */
  readonly sql: string
  readonly micros: number
}

/** `watch` returns the statements of `work`. The times contain the cost of the driver, as in a server. */
export function watchDatabase(inner: Database) {
  let taken: Taken[] | undefined
  const database = hookDatabase(inner, async ({ sql }, ask) => {
    const list = taken
    if (list === undefined) return ask()
    const startedAt = performance.now()
    const answer = await ask()
    list.push({ sql, micros: (performance.now() - startedAt) * 1000 })
    return answer
  })
  const watch = async (work: () => Awaitable<unknown>): Promise<Taken[]> => {
    const list: Taken[] = []
    taken = list
    try {
      await work()
      return list
    } finally {
      taken = undefined
    }
  }
  return { database, watch }
}
