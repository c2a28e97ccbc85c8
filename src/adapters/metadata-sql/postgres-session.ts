import type { Value } from './database.ts'
import { translateForPostgres } from './postgres-dialect.ts'
import type { Session } from './postgres-pool.ts'

export interface PostgresSettings {
  readonly url: string
  readonly connectionsMax: number
  /** How many transactions and how many look-ups may wait for a connection. More of them fail at once. */
  readonly queueMax: number
  readonly statementTimeoutMs: number
  readonly lockTimeoutMs: number
  readonly connectTimeoutMs?: number
}

const connectTimeoutMs = 5_000

/** PostgreSQL itself ends a statement that takes too long. If it does not answer for this much longer, it is considered gone. */
const graceMs = 2_000

/**
 * The limits are set by a statement, because poolers reject unknown settings in the first message of a connection. The limit
 * for idle transactions releases the locks of a Berth server that vanished.
 */
const configure = `
SELECT pg_is_in_recovery() AS "isStandby", set_config('statement_timeout', $1, false),
  set_config('lock_timeout', $2, false), set_config('idle_in_transaction_session_timeout', $1, false)`

/** The result of a statement: its rows, the number of changed rows, and its command. */
interface Result<R> extends Array<R> {
  readonly count: number
  readonly command: string
}

/** The connection failed, not the statement. */
export class ConnectionLost extends Error {
  override readonly name = 'ConnectionLost'
}

/** One connection. If a statement is not answered within the time limit, the connection is closed. */
export class PostgresSession implements Session {
  readonly #sql: Bun.SQL
  readonly #usualLimitMs: number
  #limitMs: number
  #connection: Bun.ReservedSQL | undefined
  #running = 0
  #timer: Timer | undefined
  #idleSince = performance.now()
  #lost: ConnectionLost | undefined

  private constructor(settings: PostgresSettings, connectMs: number) {
    const { url, statementTimeoutMs } = settings
    // The limit of PostgreSQL applies first. It includes the wait for locks.
    this.#usualLimitMs = statementTimeoutMs + graceMs
    this.#limitMs = this.#usualLimitMs
    this.#sql = new Bun.SQL({
      url,
      max: 1,
      bigint: true,
      connectionTimeout: connectMs / 1000,
      onclose: (cause) => this.#lose('the connection ended', cause),
      connection: { application_name: 'berth' },
    })
  }

  /**
   * The connection is reserved, because the driver's pool would otherwise reconnect silently in the middle of a transaction. A
   * standby is not accepted, because it may answer with old rows.
   */
  static async open(settings: PostgresSettings): Promise<PostgresSession> {
    const connectMs = settings.connectTimeoutMs ?? connectTimeoutMs
    const session = new PostgresSession(settings, connectMs)
    // The limit of the driver does not include the look-up of the host name.
    const timer = setTimeout(() => session.#lose(`no connection within ${connectMs} ms`), connectMs + graceMs)
    try {
      session.#connection = await session.#sql.reserve()
      const limits = [settings.statementTimeoutMs, settings.lockTimeoutMs].map(String)
      const server = await session.first<{ isStandby: boolean }>(configure, limits)
      if (server?.isStandby !== false) throw new ConnectionLost('the server is a standby')
      return session
    } catch (error) {
      const cause = session.#lost ?? error
      session.close()
      throw cause
    } finally {
      clearTimeout(timer)
    }
  }

  get isLost(): boolean {
    return this.#lost !== undefined
  }

  get idleMs(): number {
    return this.#running > 0 ? 0 : performance.now() - this.#idleSince
  }

  /** Runs a statement in the SQL of PostgreSQL, without macros. */
  async query<R extends object>(text: string, values: readonly Value[]): Promise<Result<R>> {
    if (this.#lost !== undefined) throw this.#lost
    if (this.#connection === undefined) throw new ConnectionLost('there is no connection yet')
    if (this.#running === 0) this.#startTimer()
    this.#running += 1
    try {
      return await this.#connection.unsafe(text, [...values])
    } catch (error) {
      const lost = this.#lost
      if (endsConnection(error)) this.#lose('the connection broke', error)
      throw lost ?? error
    } finally {
      this.#running -= 1
      clearTimeout(this.#timer)
      // The next of the running statements has its whole time from now on.
      if (this.#running > 0) this.#startTimer()
      else this.#idleSince = performance.now()
    }
  }

  async all<R extends object>(sql: string, values: readonly Value[]): Promise<R[]> {
    const rows = await this.query<R>(translateForPostgres(sql), values)
    for (const row of rows) toNumbers(row)
    return rows
  }

  async first<R extends object>(sql: string, values: readonly Value[]): Promise<R | undefined> {
    return (await this.all<R>(sql, values))[0]
  }

  async run(sql: string, values: readonly Value[]): Promise<number> {
    return (await this.query(translateForPostgres(sql), values)).count
  }

  /** For a long transaction: switches off the limits of PostgreSQL until the transaction ends, and sets ours to `limitMs`. */
  async extendLimit(limitMs: number): Promise<void> {
    await this.query('SET LOCAL statement_timeout = 0', [])
    await this.query('SET LOCAL idle_in_transaction_session_timeout = 0', [])
    this.#limitMs = limitMs
  }

  resetLimit(): void {
    this.#limitMs = this.#usualLimitMs
  }

  close(): void {
    this.#lost ??= new ConnectionLost('the connection was closed')
    clearTimeout(this.#timer)
    // Ends running statements (the reservation) and a connection that is not open yet (the driver's pool).
    this.#connection?.close({ timeout: 0 }).catch(() => undefined)
    this.#sql.close({ timeout: 0 }).catch(() => undefined)
  }

  #startTimer(): void {
    const limitMs = this.#limitMs
    this.#timer = setTimeout(() => this.#lose(`no answer within ${limitMs} ms`), limitMs)
  }

  #lose(why: string, cause?: unknown): void {
    if (this.#lost !== undefined) return
    this.#lost = new ConnectionLost(why, { cause })
    this.close()
  }
}

/** Row ids, sizes and times are far below 2^53. */
function toNumbers(row: object): void {
  for (const [name, value] of Object.entries(row)) {
    if (typeof value === 'bigint') Reflect.set(row, name, Number(value))
  }
}

/** The SQLSTATE of the error (five characters), or an empty text. */
export function stateOf(error: unknown): string {
  return error instanceof Bun.SQL.PostgresError ? String(error.errno ?? '') : ''
}

/**
 * Errors that a new connection cures, although PostgreSQL does not close this one. 08: the connection itself. 25006: the server
 * accepts no writes. 26000, 0A000: a prepared statement is unknown behind a pooler, or its table was changed.
 */
const endingStates = /^(08...|25006|26000|0A000)$/

function endsConnection(error: unknown): boolean {
  if (!(error instanceof Bun.SQL.PostgresError)) return false
  // Errors of the driver itself have no SQLSTATE: closed, timed out, or protocol errors.
  return stateOf(error) === '' || error.severity !== 'ERROR' || endingStates.test(stateOf(error))
}

/**
 * 40: a conflict with another transaction. 53: the disk, the memory or the connections are used up. 57: an operator or a time
 * limit ended the statement. 58: an error outside of PostgreSQL, such as a disk error. 55P03: a lock was not free in time.
 */
const unavailableStates = /^(40...|53...|57...|58...|55P03)$/

/** PostgreSQL is out of reach, busy or full. Other errors, such as a missing table, are bugs. */
export function isUnavailable(error: unknown): boolean {
  if (error instanceof ConnectionLost) return true
  if (!(error instanceof Bun.SQL.PostgresError)) return error instanceof Bun.SQL.SQLError
  return endsConnection(error) || unavailableStates.test(stateOf(error))
}
