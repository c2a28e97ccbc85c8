// A database that tells how long each statement took while it is watched, and marks in the server's log what is watched.
import type { Database } from '../../src/adapters/metadata-sql/database.ts'
import { HookedDatabase } from '../../test/support/stores/hooked-database.ts'

export interface Taken {
  /** The statement as it stands in the source, with its macros. */
  readonly sql: string
  readonly micros: number
}

/** The driver's way there and back is in the figures, as it is in a server's. */
export class WatchedDatabase extends HookedDatabase {
  readonly #watch: { taken: Taken[] | undefined }

  constructor(inner: Database) {
    const watch: { taken: Taken[] | undefined } = { taken: undefined }
    super(inner, async ({ sql }, ask) => {
      const { taken } = watch
      if (taken === undefined) return ask()
      const startedAt = performance.now()
      const answer = await ask()
      taken.push({ sql, micros: (performance.now() - startedAt) * 1000 })
      return answer
    })
    this.#watch = watch
  }

  /** What `work` has asked. */
  async watch(work: () => Promise<unknown>): Promise<Taken[]> {
    const taken: Taken[] = []
    this.#watch.taken = taken
    try {
      await work()
      return taken
    } finally {
      this.#watch.taken = undefined
    }
  }
}
