// A database that notes what it is asked, for comparing what two requests cost without looking at a clock.
import type { Database, Queryable, Row, Value } from '../../src/adapters/metadata-sql/database.ts'

/** A statement with its values: `first SELECT ... [1,"app"]`. */
export type Statement = string

export class RecordedDatabase implements Database {
  readonly statements: Statement[] = []
  readonly engine: Database['engine']
  readonly #inner: Database
  readonly #outside: Queryable

  constructor(inner: Database) {
    this.#inner = inner
    this.engine = inner.engine
    this.#outside = recorded(inner, this.statements)
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
    this.statements.push('BEGIN')
    return this.#inner
      .transaction((queries) => work(recorded(queries, this.statements)))
      .finally(() => this.statements.push('END'))
  }

  snapshot<T>(work: (queries: Queryable) => Promise<T>): Promise<T> {
    return this.#inner.snapshot((queries) => work(recorded(queries, this.statements)))
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
}

function recorded(inner: Queryable, statements: Statement[]): Queryable {
  const note = (kind: string, sql: string, values: readonly Value[]) =>
    statements.push(`${kind} ${sql.replaceAll(/\s+/g, ' ').trim()} ${JSON.stringify(values)}`)
  return {
    all(sql, values) {
      note('all', sql, values)
      return inner.all(sql, values)
    },
    first(sql, values) {
      note('first', sql, values)
      return inner.first(sql, values)
    },
    lookUp(sql, values) {
      note('look up', sql, values)
      return inner.lookUp(sql, values)
    },
    run(sql, values) {
      note('run', sql, values)
      return inner.run(sql, values)
    },
    returning(sql, values) {
      note('returning', sql, values)
      return inner.returning(sql, values)
    },
  }
}
