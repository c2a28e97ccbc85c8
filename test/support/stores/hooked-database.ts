// Databases that call a hook for each statement.
import type { Database, Queryable, Value } from '../../../src/adapters/metadata-sql/database.ts'

export interface AskedStatement {
  readonly kind: string
  /** As it stands in the source, with its macros. */
  readonly sql: string
  readonly values: readonly Value[]
}

/** Asks for the answer, and gives it back as it is. */
export type Hook = (statement: AskedStatement, ask: () => Promise<unknown>) => Promise<unknown>

const kinds = new Set<string | symbol>(['all', 'first', 'lookUp', 'run', 'returning'] satisfies (keyof Queryable)[])

export function hookDatabase<T extends Queryable>(inner: T, hook: Hook): T {
  return new Proxy(inner, {
    get(target, key) {
      const own: unknown = Reflect.get(target, key)
      if (typeof own !== 'function') return own
      if (kinds.has(key))
        return (sql: string, values: readonly Value[]) =>
          hook({ kind: String(key), sql, values }, () => own.call(target, sql, values))
      if (key !== 'transaction' && key !== 'snapshot') return own.bind(target)
      return (work: (queries: Queryable) => Promise<unknown>, ...options: unknown[]) =>
        own.call(target, (queries: Queryable) => work(hookDatabase(queries, hook)), ...options)
    },
  })
}

/** A database that records its statements with their values, such as `first SELECT ... [1,"app"]`. */
export function recordStatements(inner: Database) {
  const statements: string[] = []
  const recorded = hookDatabase(inner, ({ kind, sql, values }, ask) => {
    statements.push(`${kind} ${sql.replaceAll(/\s+/g, ' ').trim()} ${JSON.stringify(values)}`)
    return ask()
  })
  const transaction: Database['transaction'] = (work, options) => {
    statements.push('BEGIN')
    return recorded.transaction(work, options).finally(() => statements.push('END'))
  }
  const database = new Proxy(recorded, {
    get: (target, key) => (key === 'transaction' ? transaction : Reflect.get(target, key)),
  })
  return { database, statements }
}
