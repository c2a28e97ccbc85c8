import { SerialQueue } from '../../lib/serial-queue.ts'
import { Unavailable } from '../../oci/errors.ts'
import type { Queryable, Row, Value } from './database.ts'
import type { SqliteConnection } from './sqlite-connection.ts'

type Work<T> = (queries: Queryable) => Promise<T>

interface Waiting {
  readonly work: Work<unknown>
  readonly resolve: (result: unknown) => void
  readonly reject: (error: unknown) => void
}

/** Runs one change in the open transaction. Returns the function that settles it after COMMIT. */
type RunChange = (change: Waiting) => Promise<() => void>

/** Limits how long the event loop and other processes wait for one transaction. */
const groupMax = 64

/**
 * The writing connection. Changes that arrive in the same iteration of the event loop run one after the other in one
 * transaction of SQLite, because COMMIT writes each changed page once, and most changes touch the same pages of indexes.
 *
 * A change is settled after COMMIT. A change that fails before it has written anything needs no more than its error, and most
 * refusals are of this kind. If another change fails, the group is rolled back and runs again with a savepoint for each
 * change, so that only the failed change is undone. Such failures come in series, because clients repeat their requests. So
 * the next group has savepoints from the beginning, until no change fails. If COMMIT fails, or SQLite rolls back the
 * transaction by itself, each change runs again in a transaction of its own. So no result depends on rows of another change
 * that were not committed, and a change runs at most three times.
 */
export class SqliteWriter {
  readonly #connection: SqliteConnection
  readonly #beforeCommit: () => void
  readonly #queue = new SerialQueue()
  #waiting: Waiting[] = []
  /** A change of the last group failed after it had written. */
  #expectsFailures = false

  constructor(connection: SqliteConnection, beforeCommit: () => void) {
    this.#connection = connection
    this.#beforeCommit = beforeCommit
  }

  /** Runs `work` in a transaction. `work` may run several times. Resolves after COMMIT. */
  run<T>(work: Work<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    if (this.#waiting.length === 0) setImmediate(() => this.#queue.run(() => this.#runWaiting()))
    this.#waiting.push({ work, resolve: resolve as (result: unknown) => void, reject })
    return promise
  }

  /** Runs `task` outside of a transaction, after all changes that have arrived. */
  runAlone<T>(task: () => Promise<T>): Promise<T> {
    return this.#queue.run(async () => {
      await this.#runWaiting()
      return task()
    })
  }

  async #runWaiting(): Promise<void> {
    const waiting = this.#waiting
    this.#waiting = []
    for (let at = 0; at < waiting.length; at += groupMax) await this.#runGroup(waiting.slice(at, at + groupMax))
  }

  async #runGroup(group: readonly Waiting[]): Promise<void> {
    const [only] = group
    if (group.length === 1 && only !== undefined) return this.#runInOwnTransaction(only)
    if (!this.#expectsFailures && (await this.#hasCommitted(group, this.#runUnprotected))) return
    if (this.#expectsFailures) {
      this.#expectsFailures = false
      if (await this.#hasCommitted(group, this.#runInSavepoint)) return
    }
    for (const change of group) await this.#runInOwnTransaction(change)
  }

  #hasCommitted(group: readonly Waiting[], run: RunChange): Promise<boolean> {
    return this.#commit(group, run).then(
      () => true,
      () => false,
    )
  }

  async #runInOwnTransaction(change: Waiting): Promise<void> {
    await this.#commit([change], this.#runUnprotected).catch(change.reject)
  }

  /** Runs the changes in one transaction, and settles them after COMMIT. If it rejects, none is settled and nothing has changed. */
  async #commit(group: readonly Waiting[], run: RunChange): Promise<void> {
    try {
      // IMMEDIATE: a transaction that reads first and writes later would fail if another process wrote in between.
      this.#connection.control('BEGIN IMMEDIATE')
    } catch (error) {
      // It has waited for another process. Another attempt would wait as long.
      for (const { reject } of group) reject(error)
      return
    }
    const settles: (() => void)[] = []
    try {
      for (const change of group) settles.push(await run(change))
      this.#beforeCommit()
      this.#connection.control('COMMIT')
    } catch (error) {
      this.#connection.rollback()
      throw error
    }
    for (const settle of settles) settle()
  }

  readonly #runUnprotected: RunChange = async (change) => {
    const queries = new ChangeQueries(this.#connection)
    try {
      return await runWithin(queries, change)
    } catch (error) {
      if (queries.isUnchanged) return () => change.reject(error)
      this.#expectsFailures = true
      throw error
    }
  }

  readonly #runInSavepoint: RunChange = async (change) => {
    this.#connection.control('SAVEPOINT change')
    const queries = new ChangeQueries(this.#connection)
    try {
      return await runWithin(queries, change)
    } catch (error) {
      if (!queries.isUnchanged) {
        this.#expectsFailures = true
        this.#connection.control('ROLLBACK TO change')
      }
      return () => change.reject(error)
    } finally {
      this.#connection.control('RELEASE change')
    }
  }
}

async function runWithin(queries: ChangeQueries, { work, resolve }: Waiting): Promise<() => void> {
  try {
    const result = await work(queries)
    return () => resolve(result)
  } finally {
    queries.end()
  }
}

/** If such a statement changes no row, it has changed nothing. Any other, such as CREATE TABLE, may have changed something. */
const changesRows = /^\s*(?:INSERT|UPDATE|DELETE)\b/i

/**
 * The statements of one change. SQLite may roll back a whole transaction when a statement fails, for example because the
 * disk is full. A later statement of the change would then be a transaction of its own. Here it fails. So does a
 * statement after the change has ended, which would become a part of another change.
 */
class ChangeQueries implements Queryable {
  readonly #connection: SqliteConnection
  #hasEnded = false
  #hasWritten = false

  constructor(connection: SqliteConnection) {
    this.#connection = connection
  }

  /** No statement of the change has changed anything, so nothing needs to be undone. */
  get isUnchanged(): boolean {
    return !this.#hasWritten && this.#connection.isInTransaction
  }

  end(): void {
    this.#hasEnded = true
  }

  async all<R extends object = Row>(sql: string, values: readonly Value[]): Promise<R[]> {
    return this.#open().allNow<R>(sql, values)
  }

  async first<R extends object = Row>(sql: string, values: readonly Value[]): Promise<R | undefined> {
    return this.#open().firstNow<R>(sql, values)
  }

  lookUp<R extends object = Row>(sql: string, values: readonly Value[]): R | undefined {
    return this.#open().firstNow<R>(sql, values)
  }

  async run(sql: string, values: readonly Value[]): Promise<number> {
    const count = this.#open().runNow(sql, values)
    if (count > 0 || !changesRows.test(sql)) this.#hasWritten = true
    return count
  }

  async returning<R extends object = Row>(sql: string, values: readonly Value[]): Promise<R[]> {
    const rows = this.#open().allNow<R>(sql, values)
    if (rows.length > 0 || !changesRows.test(sql)) this.#hasWritten = true
    return rows
  }

  #open(): SqliteConnection {
    if (this.#hasEnded) throw new Error('a statement came after the end of its change')
    if (this.#connection.isInTransaction) return this.#connection
    throw new Unavailable('metadata-store', { cause: new Error('SQLite has rolled back the transaction') })
  }
}
