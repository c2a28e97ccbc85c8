import type { Value } from './database.ts'
import { inOurWords } from './postgres-dialect.ts'
import type { Session } from './postgres-pool.ts'

export interface PostgresSettings {
  readonly url: string
  readonly connectionsMax: number
  /** Most statements and transactions that wait for a connection; more are refused as trouble. */
  readonly queueMax: number
  readonly statementTimeoutMs: number
  readonly lockTimeoutMs: number
  readonly connectTimeoutMs?: number
}

const connectTimeoutMs = 5_000

/** The server ends a statement by itself when its time is over. So much later it is taken for gone. */
const slackMs = 2_000

/**
 * Limits are told here and not with the connection's first message, because poolers refuse what they do not know in that. A
 * server of ours that vanished within a transaction must not keep its locks.
 */
const greeting = `
SELECT pg_is_in_recovery() AS "isStandby", set_config('statement_timeout', $1, false),
  set_config('lock_timeout', $2, false), set_config('idle_in_transaction_session_timeout', $1, false)`

/** What the driver gives for a statement: its rows, how many were changed, and its first word. */
interface Outcome<R> extends Array<R> {
  readonly count: number
  readonly command: string
}

/** The connection, not the statement, is at fault. */
export class ConnectionTrouble extends Error {
  override readonly name = 'ConnectionTrouble'
}

/** One connection. All that is asked of it is answered within a known time, or else the connection is given up. */
export class PostgresSession implements Session {
  readonly #sql: Bun.SQL
  readonly #usualLimitMs: number
  #limitMs: number
  #connection: Bun.ReservedSQL | undefined
  #underWay = 0
  #timer: Timer | undefined
  #restsSince = performance.now()
  #trouble: ConnectionTrouble | undefined

  private constructor(settings: PostgresSettings, connectMs: number) {
    const { url, statementTimeoutMs } = settings
    // The server's own limit, which comes first, counts the wait for locks as well.
    this.#usualLimitMs = statementTimeoutMs + slackMs
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
   * The driver's pool of one would connect again in the middle of a transaction, and say nothing. What is reserved of it
   * is one connection and stays that. A standby would answer too, with rows of yesterday.
   */
  static async open(settings: PostgresSettings): Promise<PostgresSession> {
    const connectMs = settings.connectTimeoutMs ?? connectTimeoutMs
    const session = new PostgresSession(settings, connectMs)
    // The driver's own limit does not count the time that it takes to find the host.
    const timer = setTimeout(() => session.#lose(`no connection within ${connectMs} ms`), connectMs + slackMs)
    try {
      session.#connection = await session.#sql.reserve()
      const limits = [settings.statementTimeoutMs, settings.lockTimeoutMs].map(String)
      const server = await session.first<{ isStandby: boolean }>(greeting, limits)
      if (server?.isStandby !== false) throw new ConnectionTrouble('the server is a standby')
      return session
    } catch (error) {
      const trouble = session.#trouble ?? error
      session.close()
      throw trouble
    } finally {
      clearTimeout(timer)
    }
  }

  get isLost(): boolean {
    return this.#trouble !== undefined
  }

  get restedMs(): number {
    return this.#underWay > 0 ? 0 : performance.now() - this.#restsSince
  }

  async ask<R extends object>(text: string, values: readonly Value[]): Promise<Outcome<R>> {
    if (this.#trouble !== undefined) throw this.#trouble
    if (this.#connection === undefined) throw new ConnectionTrouble('there is no connection yet')
    if (this.#underWay === 0) this.#startTimer()
    this.#underWay += 1
    try {
      return await this.#connection.unsafe(text, [...values])
    } catch (error) {
      const known = this.#trouble
      if (endsConnection(error)) this.#lose('the connection broke', error)
      throw known ?? error
    } finally {
      this.#underWay -= 1
      clearTimeout(this.#timer)
      // Of those that are under way, the next has all its time from now on.
      if (this.#underWay > 0) this.#startTimer()
      else this.#restsSince = performance.now()
    }
  }

  async all<R extends object>(sql: string, values: readonly Value[]): Promise<R[]> {
    const rows = await this.ask<R>(inOurWords(sql), values)
    for (const row of rows) toNumbers(row)
    return rows
  }

  async first<R extends object>(sql: string, values: readonly Value[]): Promise<R | undefined> {
    return (await this.all<R>(sql, values))[0]
  }

  async run(sql: string, values: readonly Value[]): Promise<number> {
    return (await this.ask(inOurWords(sql), values)).count
  }

  /** Until its transaction ends, the server waits for its end and we for the server as long as there is work to do. */
  async takeYourTime(limitMs: number): Promise<void> {
    await this.ask('SET LOCAL statement_timeout = 0', [])
    await this.ask('SET LOCAL idle_in_transaction_session_timeout = 0', [])
    this.#limitMs = limitMs
  }

  hurryAgain(): void {
    this.#limitMs = this.#usualLimitMs
  }

  close(): void {
    this.#trouble ??= new ConnectionTrouble('the connection was closed')
    clearTimeout(this.#timer)
    // What is under way ends now: the reservation gives up its statements, the pool what is not connected yet.
    this.#connection?.close({ timeout: 0 }).catch(() => undefined)
    this.#sql.close({ timeout: 0 }).catch(() => undefined)
  }

  #startTimer(): void {
    const limitMs = this.#limitMs
    this.#timer = setTimeout(() => this.#lose(`no answer within ${limitMs} ms`), limitMs)
  }

  #lose(why: string, cause?: unknown): void {
    if (this.#trouble !== undefined) return
    this.#trouble = new ConnectionTrouble(why, { cause })
    this.close()
  }
}

/** Row numbers, sizes and times: all of them far below 2^53. */
function toNumbers(row: object): void {
  for (const [name, value] of Object.entries(row)) {
    if (typeof value === 'bigint') Reflect.set(row, name, Number(value))
  }
}

/** The five letters of the SQL standard that say what went wrong, or none. */
export function stateOf(error: unknown): string {
  return error instanceof Bun.SQL.PostgresError ? String(error.errno ?? '') : ''
}

/**
 * Also without being fatal: 08 is the connection itself; 25006, a server that takes no writes (any more); 26000 and 0A000, a
 * prepared statement that is unknown behind a pooler, or whose table was changed meanwhile. A new connection cures them.
 */
const endingStates = /^(08...|25006|26000|0A000)$/

function endsConnection(error: unknown): boolean {
  if (!(error instanceof Bun.SQL.PostgresError)) return false
  // The driver's own troubles have no state: closed, timed out, or not understood.
  return stateOf(error) === '' || error.severity !== 'ERROR' || endingStates.test(stateOf(error))
}

/**
 * 40: the transaction met another one. 53: the disk, the memory or the connections are used up. 57: an operator or a limit of time
 * ended the statement. 58: an error of the system around the server, such as a disk. 55P03: a lock was not free in time.
 */
const unavailableStates = /^(40...|53...|57...|58...|55P03)$/

/** The server is out of reach, busy or full. Other faults, such as a missing table, are mistakes in this program. */
export function isTrouble(error: unknown): boolean {
  if (error instanceof ConnectionTrouble) return true
  if (!(error instanceof Bun.SQL.PostgresError)) return error instanceof Bun.SQL.SQLError
  return endsConnection(error) || unavailableStates.test(stateOf(error))
}
