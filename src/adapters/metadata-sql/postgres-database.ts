import { NoSlot, Slots } from '../../lib/slots.ts'
import { Unavailable } from '../../oci/errors.ts'
import type { Database, Queryable, Row, Value } from './database.ts'
import { PoolClosed, SessionPool } from './postgres-pool.ts'
import { ConnectionTrouble, isTrouble, PostgresSession, type PostgresSettings, stateOf } from './postgres-session.ts'

/** For a migration, which may build an index over millions of rows, for who waits until it is over, and for a copy. */
const longMs = 3_600_000
const migrationPollMs = 100

/** Of the connections, so many carry look-ups alone, this many at a time each: their statements do not wait for answers. */
const sharedMax = 2
const lookUpsPerShared = 32

/** Serialization failures and deadlocks: the transaction did nothing, and may well succeed the next time. */
const retriedStates: ReadonlySet<string> = new Set(['40001', '40P01'])
const triesMax = 4

/** Any number that no other program locks in the same database. */
const migrationLock = 0x42_65_72_74

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
    // Whoever waits for longer than a statement may take is told that there is trouble, and may come again.
    this.#slots = new Slots(Math.max(1, connectionsMax - shared), queueMax, statementTimeoutMs)
    this.#lookUps = new Slots(shared * lookUpsPerShared, queueMax, statementTimeoutMs)
  }

  all<R extends object = Row>(sql: string, values: readonly Value[]): Promise<R[]> {
    return this.#alone((session) => session.all<R>(sql, values))
  }

  first<R extends object = Row>(sql: string, values: readonly Value[]): Promise<R | undefined> {
    return this.#alone((session) => session.first<R>(sql, values))
  }

  lookUp<R extends object = Row>(sql: string, values: readonly Value[]): Promise<R | undefined> {
    return attempt(() => this.#lookUps.run(() => this.#pool.share((session) => session.first<R>(sql, values))))
  }

  run(sql: string, values: readonly Value[]): Promise<number> {
    return this.#alone((session) => session.run(sql, values))
  }

  returning<R extends object = Row>(sql: string, values: readonly Value[]): Promise<R[]> {
    return this.all<R>(sql, values)
  }

  transaction<T>(work: (queries: Queryable) => Promise<T>): Promise<T> {
    return this.#alone((session) => transact(session, 'BEGIN', work, this.#isMigrating))
  }

  snapshot<T>(work: (queries: Queryable) => Promise<T>): Promise<T> {
    const begin = 'BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY'
    return this.#alone((session) => transact(session, begin, work, true))
  }

  async hasTable(name: string): Promise<boolean> {
    return (await this.first('SELECT 1 AS found WHERE to_regclass($1) IS NOT NULL', [name])) !== undefined
  }

  async script(sql: string): Promise<void> {
    await this.#alone((session) => session.run(sql, []))
  }

  /**
   * The lock is held by a transaction on a connection of its own, which ends with it whatever happens; asked for again and
   * again, because waiting for it would be cut by the limits of a statement.
   */
  async alone<T>(work: () => Promise<T>): Promise<T> {
    const session = await attempt(() => PostgresSession.open(this.#settings))
    try {
      await attempt(() => waitForMigrations(session))
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

  /** A session for `act` alone: a transaction, or a statement, which is one by itself. */
  async #alone<T>(act: (session: PostgresSession) => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await attempt(() => this.#slots.run(() => this.#pool.lend(act)))
      } catch (error) {
        if (tries === triesMax || !isWorthAnotherTry(error)) throw error
      }
    }
  }
}

async function transact<T>(
  session: PostgresSession,
  begin: string,
  work: (queries: Queryable) => Promise<T>,
  takesLong: boolean,
): Promise<T> {
  const transaction = new Transaction(session)
  await session.ask(begin, [])
  try {
    if (takesLong) await session.takeYourTime(longMs)
    const result = await work(transaction)
    transaction.end()
    const { command } = await session.ask('COMMIT', [])
    // The server says so in no other way: a statement had failed, and the work went on all the same.
    if (command !== 'COMMIT') throw new Error('a transaction went on after one of its statements had failed')
    return result
  } catch (error) {
    transaction.end()
    if (!session.isLost) await session.ask('ROLLBACK', []).catch(() => session.close())
    throw error
  } finally {
    session.hurryAgain()
  }
}

async function waitForMigrations(session: PostgresSession): Promise<void> {
  await session.ask('BEGIN', [])
  await session.takeYourTime(longMs)
  const deadline = performance.now() + longMs
  for (;;) {
    const tried = await session.first<{ isOurs: boolean }>('SELECT pg_try_advisory_xact_lock($1) AS "isOurs"', [
      migrationLock,
    ])
    if (tried?.isOurs) return
    if (performance.now() > deadline) throw new ConnectionTrouble('another server is migrating the database')
    await Bun.sleep(migrationPollMs)
  }
}

/** What a transaction's work may ask; nothing any more when it is over, because the session is somebody else's then. */
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

function isWorthAnotherTry(error: unknown): boolean {
  return error instanceof Unavailable && retriedStates.has(stateOf(error.cause))
}

/** Turns trouble into `Unavailable`, with the fault as the cause. All other faults go on to the caller as they are. */
async function attempt<T>(act: () => Promise<T>): Promise<T> {
  try {
    return await act()
  } catch (error) {
    const isUnavailable = error instanceof NoSlot || error instanceof PoolClosed || isTrouble(error)
    throw isUnavailable ? new Unavailable('the metadata store', { cause: error }) : error
  }
}
