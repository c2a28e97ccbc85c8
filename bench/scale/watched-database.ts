// A database that tells how long each statement took while it is watched, and marks in the server's log what is watched.
import type { Database } from '../../src/adapters/metadata-sql/database.ts'
import { hookDatabase } from '../../test/support/stores/hooked-database.ts'

export interface Taken {
  /** The statement as it stands in the source, with its macros. */
  readonly sql: string
  readonly micros: number
}

/** `watch` gives what `work` has asked. The driver's way there and back is in the figures, as it is in a server's. */
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
  const watch = async (work: () => Promise<unknown>): Promise<Taken[]> => {
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
