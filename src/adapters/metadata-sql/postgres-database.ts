import { NoSlot, Slots } from '../../lib/slots.ts'
import { Unavailable } from '../../oci/errors.ts'
import type { Database, Queryable, Row, Value } from './database.ts'
import { PoolClosed, SessionPool } from './postgres-pool.ts'
import { ConnectionLost, isUnavailable, PostgresSession, type PostgresSettings, stateOf } from './postgres-session.ts'

/** Limit for a migration, which may build an index over millions of rows, for the wait for a migration, and for a copy. */
const longMs = 3_600_000
const migrationPollMs = 100

/** Look-ups have connections of their own. Each carries this many at once, without waiting for one answer after the other. */
const sharedMax = 2
const lookUpsPerShared = 32

/** Serialization failures and deadlocks: the transaction changed nothing and will probably succeed if it is repeated. */
const retriedStates: ReadonlySet<string> = new Set(['40001', '40P01'])
const triesMax = 4

/** Key of the advisory lock; an arbitrary number that no other program uses in the same database. */
const migrationLock = 0x42_65_72_74

/**
 * PostgreSQL, 15 or newer, with READ COMMITTED: a statement sees the rows that were committed before it began. So a transaction
 * first locks its rows and then reads them in a second statement.
 *
 * The number of connections is limited, and so is the number of callers that wait for one, and how long they wait. Above the
 * limits, and for every fault of the connection or the server, callers get `Unavailable`.
 */
export class PostgresDatabase implements Database {
  readonly engine = 'postgres'
  readonly #settings: PostgresSettings
  readonly #pool: SessionPool<PostgresSession>
  readonly #slots: Slots
  readonly #lookUps: Slots
  #isMigrating = false

  constructor(settings: PostgresSettings) {
    const { connectionsMax, queueMax, statementTimeoutMs } = settings
    const shared = Math.max(1, Math.min(sharedMax, Math.floor(connectionsMax / 3)))
    this.#settings = settings
    this.#pool = new SessionPool(shared, () => PostgresSession.open(settings))
    // A caller that waits for longer than a statement may take gets `Unavailable`.
    this.#slots = new Slots(Math.max(1, connectionsMax - shared), queueMax, statementTimeoutMs)
    this.#lookUps = new Slots(shared * lookUpsPerShared, queueMax, statementTimeoutMs)
  }

  all<R extends object = Row>(sql: string, values: readonly Value[]): Promise<R[]> {
    return this.#withSession((session) => session.all<R>(sql, values))
  }

  first<R extends object = Row>(sql: string, values: readonly Value[]): Promise<R | undefined> {
    return this.#withSession((session) => session.first<R>(sql, values))
  }

  lookUp<R extends object = Row>(sql: string, values: readonly Value[]): Promise<R | undefined> {
    return attempt(() => this.#lookUps.run(() => this.#pool.share((session) => session.first<R>(sql, values))))
  }

  run(sql: string, values: readonly Value[]): Promise<number> {
    return this.#withSession((session) => session.run(sql, values))
  }

  returning<R extends object = Row>(sql: string, values: readonly Value[]): Promise<R[]> {
    return this.all<R>(sql, values)
  }

  transaction<T>(work: (queries: Queryable) => Promise<T>): Promise<T> {
    return this.#withSession((session) => transact(session, 'BEGIN', work, this.#isMigrating))
  }

  snapshot<T>(work: (queries: Queryable) => Promise<T>): Promise<T> {
    const begin = 'BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY'
    return this.#withSession((session) => transact(session, begin, work, true))
  }

  /** Rows become visible after their COMMIT has waited for the disk. */
  async flush(): Promise<void> {}

  async hasTable(name: string): Promise<boolean> {
    return (await this.first('SELECT 1 AS found WHERE to_regclass($1) IS NOT NULL', [name])) !== undefined
  }

  /** A transaction on a separate connection holds an advisory lock, so the lock is released if this process dies. */
  async withMigrationLock<T>(work: () => Promise<T>): Promise<T> {
    const session = await attempt(() => PostgresSession.open(this.#settings))
    try {
      await attempt(() => waitForMigrationLock(session))
      this.#isMigrating = true
      return await work()
    } finally {
      this.#isMigrating = false
      await session.run('ROLLBACK', []).catch(() => undefined)
      session.close()
    }
  }

  async close(): Promise<void> {
    await this.#pool.close()
  }

  /** Runs `act`, a transaction or a single statement, on a session of its own, and repeats it after a conflict. */
  async #withSession<T>(act: (session: PostgresSession) => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await attempt(() => this.#slots.run(() => this.#pool.lend(act)))
      } catch (error) {
        if (tries === triesMax || !isRetryable(error)) throw error
      }
    }
  }
}

async function transact<T>(
  session: PostgresSession,
  begin: string,
  work: (queries: Queryable) => Promise<T>,
  isLong: boolean,
): Promise<T> {
  const transaction = new Transaction(session)
  await session.query(begin, [])
  try {
    if (isLong) await session.extendLimit(longMs)
    const result = await work(transaction)
    transaction.end()
    const { command } = await session.query('COMMIT', [])
    // PostgreSQL answers ROLLBACK if a statement had failed and the work ignored that.
    if (command !== 'COMMIT') throw new Error('a transaction continued after one of its statements had failed')
    return result
  } catch (error) {
    transaction.end()
    if (!session.isLost) await session.query('ROLLBACK', []).catch(() => session.close())
    throw error
  } finally {
    session.resetLimit()
  }
}

/** Polls, because the time limit of a statement would end a wait for the lock. */
async function waitForMigrationLock(session: PostgresSession): Promise<void> {
  await session.query('BEGIN', [])
  await session.extendLimit(longMs)
  const deadline = performance.now() + longMs
  for (;;) {
    const tried = await session.first<{ isOurs: boolean }>('SELECT pg_try_advisory_xact_lock($1) AS "isOurs"', [
      migrationLock,
    ])
    if (tried?.isOurs) return
    if (performance.now() > deadline) throw new ConnectionLost('another server is migrating the database')
    await Bun.sleep(migrationPollMs)
  }
}

/** The statements of one transaction. It fails after the end of the transaction, because the session then serves another one. */
class Transaction implements Queryable {
  readonly #session: PostgresSession
  #isOver = false

  constructor(session: PostgresSession) {
    this.#session = session
  }

  end(): void {
    this.#isOver = true
  }

  all<R extends object = Row>(sql: string, values: readonly Value[]): Promise<R[]> {
    return this.#within((session) => session.all<R>(sql, values))
  }

  first<R extends object = Row>(sql: string, values: readonly Value[]): Promise<R | undefined> {
    return this.#within((session) => session.first<R>(sql, values))
  }

  lookUp<R extends object = Row>(sql: string, values: readonly Value[]): Promise<R | undefined> {
    return this.first<R>(sql, values)
  }

  run(sql: string, values: readonly Value[]): Promise<number> {
    return this.#within((session) => session.run(sql, values))
  }

  returning<R extends object = Row>(sql: string, values: readonly Value[]): Promise<R[]> {
    return this.all<R>(sql, values)
  }

  #within<T>(act: (session: PostgresSession) => Promise<T>): Promise<T> {
    if (this.#isOver) return Promise.reject(new Error('a statement came after the end of its transaction'))
    return attempt(() => act(this.#session))
  }
}

function isRetryable(error: unknown): boolean {
  return error instanceof Unavailable && retriedStates.has(stateOf(error.cause))
}

/** Wraps faults of the environment in `Unavailable`. Throws all others as they are. */
async function attempt<T>(act: () => Promise<T>): Promise<T> {
  try {
    return await act()
  } catch (error) {
    const isOutage = error instanceof NoSlot || error instanceof PoolClosed || isUnavailable(error)
    throw isOutage ? new Unavailable('metadata-store', { cause: error }) : error
  }
}
