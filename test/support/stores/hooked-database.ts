// A database that calls a hook for each statement.
import type { Database, Queryable, Row, Value } from '../../../src/adapters/metadata-sql/database.ts'

/** Asks for the answer, and gives it back as it is. */
export type Hook = <T>(statement: AskedStatement, ask: () => Promise<T>) => Promise<T>

export interface AskedStatement {
  readonly kind: keyof Queryable
  /** As it stands in the source, with its macros. */
  readonly sql: string
  readonly values: readonly Value[]
}

export class HookedDatabase implements Database {
  readonly engine: Database['engine']
  readonly #inner: Database
  readonly #hook: Hook
  readonly #outside: Queryable

  constructor(inner: Database, hook: Hook) {
    this.#inner = inner
    this.#hook = hook
    this.engine = inner.engine
    this.#outside = hooked(inner, hook)
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
    return this.#inner.transaction((queries) => work(hooked(queries, this.#hook)))
  }

  snapshot<T>(work: (queries: Queryable) => Promise<T>): Promise<T> {
    return this.#inner.snapshot((queries) => work(hooked(queries, this.#hook)))
  }

  hasTable(name: string): Promise<boolean> {
    return this.#inner.hasTable(name)
  }

  withMigrationLock<T>(work: () => Promise<T>): Promise<T> {
    return this.#inner.withMigrationLock(work)
  }

  close(): Promise<void> {
    return this.#inner.close()
  }
}

function hooked(inner: Queryable, hook: Hook): Queryable {
  return {
    all: (sql, values) => hook({ kind: 'all', sql, values }, () => inner.all(sql, values)),
    first: (sql, values) => hook({ kind: 'first', sql, values }, () => inner.first(sql, values)),
    lookUp: (sql, values) => hook({ kind: 'lookUp', sql, values }, () => inner.lookUp(sql, values)),
    run: (sql, values) => hook({ kind: 'run', sql, values }, () => inner.run(sql, values)),
    returning: (sql, values) => hook({ kind: 'returning', sql, values }, () => inner.returning(sql, values)),
  }
}
