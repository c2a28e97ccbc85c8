// A database that tells how long each statement took while it is watched, and marks in the server's log what is watched.
import type { Database, Queryable, Row, Value } from '../../src/adapters/metadata-sql/database.ts'

export interface Taken {
  /** The statement as it stands in the source, with its macros. */
  readonly sql: string
  readonly micros: number
}

/** The driver's way there and back is in the figures, as it is in a server's. */
export class WatchedDatabase implements Database {
  readonly engine: Database['engine']
  readonly #inner: Database
  #taken: Taken[] | undefined
  readonly #outside: Queryable

  constructor(inner: Database) {
    this.#inner = inner
    this.engine = inner.engine
    this.#outside = this.#watched(inner)
  }

  /** What `work` has asked. */
  async watch(work: () => Promise<unknown>): Promise<Taken[]> {
    const taken: Taken[] = []
    this.#taken = taken
    try {
      await work()
      return taken
    } finally {
      this.#taken = undefined
    }
  }

  all<R extends object = Row>(sql: string, values: readonly Value[]): Promise<R[]> {
    return this.#outside.all<R>(sql, values)
  }

  first<R extends object = Row>(sql: string, values: readonly Value[]): Promise<R | undefined> {
    return this.#outside.first<R>(sql, values)
  }

  lookUp<R extends object = Row>(sql: string, values: readonly Value[]): Promise<R | undefined> {
    return this.#outside.lookUp<R>(sql, values)
  }

  run(sql: string, values: readonly Value[]): Promise<number> {
    return this.#outside.run(sql, values)
  }

  returning<R extends object = Row>(sql: string, values: readonly Value[]): Promise<R[]> {
    return this.#outside.returning<R>(sql, values)
  }

  transaction<T>(work: (queries: Queryable) => Promise<T>): Promise<T> {
    return this.#inner.transaction((queries) => work(this.#watched(queries)))
  }

  snapshot<T>(work: (queries: Queryable) => Promise<T>): Promise<T> {
    return this.#inner.snapshot(work)
  }

  hasTable(name: string): Promise<boolean> {
    return this.#inner.hasTable(name)
  }

  script(sql: string): Promise<void> {
    return this.#inner.script(sql)
  }

  alone<T>(work: () => Promise<T>): Promise<T> {
    return this.#inner.alone(work)
  }

  close(): Promise<void> {
    return this.#inner.close()
  }

  #watched(inner: Queryable): Queryable {
    const timed = async <T>(sql: string, ask: () => Promise<T>): Promise<T> => {
      const taken = this.#taken
      if (taken === undefined) return ask()
      const startedAt = performance.now()
      const answer = await ask()
      taken.push({ sql, micros: (performance.now() - startedAt) * 1000 })
      return answer
    }
    return {
      all: (sql, values) => timed(sql, () => inner.all(sql, values)),
      first: (sql, values) => timed(sql, () => inner.first(sql, values)),
      lookUp: (sql, values) => timed(sql, () => inner.lookUp(sql, values)),
      run: (sql, values) => timed(sql, () => inner.run(sql, values)),
      returning: (sql, values) => timed(sql, () => inner.returning(sql, values)),
    }
  }
}
