import type { Awaitable } from '../../ports/awaitable.ts'

/**
 * The SQL interface that SQLite and PostgreSQL share. Every statement is written once, in the SQL that both understand. Where
 * they differ, a statement contains a macro in braces:
 *
 *   {now}                       milliseconds since 1970, by the clock of the database
 *   {in $n}                     IN the members of the JSON array of texts that is parameter n
 *   {each $n}                   a FROM item `each` with one row for each member of the JSON array; `each.value` is JSON
 *   {each text $n}              the same for an array of texts; `each.value` is a text
 *   {outbox}                    the table for new events; see migration 13
 *   {id} {number} {text} {bytes} {table}   types of columns and tables, in migrations
 *
 * Locks of PostgreSQL, held until the transaction ends. SQLite has one writer at a time and needs none of them:
 *
 *   {for key share a}           the rows of `a` cannot be deleted, and `for update` waits
 *   {for no key update a}       one transaction at a time; does not wait for `for key share`, even of other transactions
 *   {for update a}              one transaction at a time; waits for every other lock of the rows
 *   {for update a skip locked}  the same, but skips rows that another transaction has locked
 *   {lock table a, b}           a statement of its own: waits until no transaction has locked rows of these tables, and keeps
 *                               others from locking any; plain reads do not wait
 */
export type Value = string | number | Uint8Array | null

/** A row as the engine returns it: values by column name. */
export type Row = Readonly<Record<string, unknown>>

export interface Queryable {
  /** Reads. Outside a transaction they see committed rows only. */
  all<R extends object = Row>(sql: string, values: readonly Value[]): Promise<R[]>
  first<R extends object = Row>(sql: string, values: readonly Value[]): Promise<R | undefined>

  /**
   * As `first`, for a look-up by key whose result depends on rows alone, not on the time. An engine may answer from a cache
   * as long as it knows that no row has changed.
   */
  lookUp<R extends object = Row>(sql: string, values: readonly Value[]): Awaitable<R | undefined>

  /** Writes and returns the number of changed rows, or with RETURNING the rows. */
  run(sql: string, values: readonly Value[]): Promise<number>
  returning<R extends object = Row>(sql: string, values: readonly Value[]): Promise<R[]>
}

export interface Database extends Queryable {
  readonly engine: 'sqlite' | 'postgres'

  /**
   * Commits if `work` resolves, and rolls back if it rejects. PostgreSQL may run `work` again after a serialization failure,
   * SQLite after a failure of another change.
   * With `mayBeLost`, an engine need not wait until the commit is on the disk.
   */
  transaction<T>(work: (queries: Queryable) => Promise<T>, options?: { readonly mayBeLost?: boolean }): Promise<T>

  /** Reads that all see the same moment, however long they take. Writers do not wait for them. */
  snapshot<T>(work: (queries: Queryable) => Promise<T>): Promise<T>

  /** Resolves when every committed row that a read has returned is durable. */
  flush(): Promise<void>

  hasTable(name: string): Promise<boolean>

  /** Runs `work` while no other process is in its own `withMigrationLock`. Transactions of `work` may take up to an hour. */
  withMigrationLock<T>(work: () => Promise<T>): Promise<T>

  close(): Promise<void>
}

/** How one engine writes the macros. */
export interface Dialect {
  readonly words: Readonly<Record<string, string>>
  in(parameter: string): string
  each(parameter: string): string
  eachText(parameter: string): string
  /** `lock` is `for update`, `for no key update` or `for key share`. */
  lockRows(lock: string, tables: string, skipsLocked: boolean): string
  lockTable(tables: string): string
}

const macro =
  /\{([a-z]+)\}|\{(in|each|each text) (\$\d+)\}|\{lock table ([^}]+)\}|\{(for (?:update|no key update|key share)) ([^}]+?)( skip locked)?\}/g

/** Replaces the macros. The engines keep the result, so each statement is translated once. */
export function translate(sql: string, dialect: Dialect): string {
  return sql.replace(macro, (whole, word, list, parameter, lockedTables, lock, tables, skip) => {
    if (word !== undefined) return dialect.words[word] ?? whole
    if (list === 'in') return dialect.in(parameter)
    if (list !== undefined) return list === 'each' ? dialect.each(parameter) : dialect.eachText(parameter)
    if (lockedTables !== undefined) return dialect.lockTable(lockedTables)
    return dialect.lockRows(lock, tables, skip !== undefined)
  })
}
