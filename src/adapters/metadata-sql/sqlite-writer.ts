import { SerialQueue } from '../../lib/serial-queue.ts'
import type { Queryable } from './database.ts'
import type { SqliteConnection } from './sqlite-connection.ts'

type Work<T> = (queries: Queryable) => Promise<T>

interface Waiting {
  readonly work: Work<unknown>
  readonly resolve: (result: unknown) => void
  readonly reject: (error: unknown) => void
}

/** Limits how long the event loop and other processes wait for one transaction. */
const groupMax = 64

/**
 * The writing connection. Changes that arrive in the same iteration of the event loop run one after the other in one
 * transaction of SQLite, because COMMIT writes each changed page once, and most changes touch the same pages of indexes.
 *
 * A change is settled after COMMIT. If one change of a group fails, or COMMIT fails, the group is rolled back, and each change
 * runs again in a transaction of its own. So no result depends on rows of another change that were not committed.
 */
export class SqliteWriter {
  readonly #connection: SqliteConnection
  readonly #beforeCommit: () => void
  readonly #queue = new SerialQueue()
  #waiting: Waiting[] = []

  constructor(connection: SqliteConnection, beforeCommit: () => void) {
    this.#connection = connection
    this.#beforeCommit = beforeCommit
  }

  /** Runs `work` in a transaction. `work` may run twice. Resolves after COMMIT. */
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
    try {
      // IMMEDIATE: a transaction that reads first and writes later would fail if another process wrote in between.
      this.#connection.control('BEGIN IMMEDIATE')
    } catch (error) {
      for (const { reject } of group) reject(error)
      return
    }
    try {
      const results: unknown[] = []
      for (const { work } of group) results.push(await work(this.#connection))
      this.#beforeCommit()
      this.#connection.control('COMMIT')
      for (const [at, { resolve }] of group.entries()) resolve(results[at])
    } catch (error) {
      this.#connection.rollback()
      if (group.length === 1) return group[0]?.reject(error)
      for (const one of group) await this.#runGroup([one])
    }
  }
}
