import { SQLiteError, Database as Sqlite, type Statement } from 'bun:sqlite'
import { SerialQueue } from '../../lib/serial-queue.ts'
import { Unavailable } from '../../oci/errors.ts'
import { type Database, type Dialect, type Queryable, type Row, translate, type Value } from './database.ts'
import { RememberedRows } from './remembered-rows.ts'

/**
 * SQLite, embedded. Two connections: one writes, one transaction at a time; the other reads and so never sees what is
 * not yet committed, although a transaction here spans several turns of the event loop.
 *
 * Every commit reaches the disk before it is acknowledged: `synchronous=FULL` is set on each connection and read back,
 * because an existing WAL database is otherwise opened with NORMAL, which loses acknowledged commits in a power cut.
 */
const dialect: Dialect = {
  words: {
    now: "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
    id: 'INTEGER PRIMARY KEY AUTOINCREMENT',
    number: 'INTEGER',
    text: 'TEXT',
    bytes: 'BLOB',
    table: 'STRICT',
  },
  any: (parameter) => `IN (SELECT value FROM json_each(${parameter}))`,
  each: (parameter) => `json_each(${parameter}) AS each`,
  texts: (parameter) => `json_each(${parameter}) AS each`,
  keep: () => '',
  lock: () => '',
  serialize: () => '',
  holdUp: () => 'SELECT 1',
}

const logBytesMax = 16 * 1024 * 1024

/** How long a statement waits for another process (`berth gc` beside a server) before it gives up. */
const busyTimeoutMs = 5_000

export class SqliteDatabase implements Database {
  readonly engine = 'sqlite'
  readonly #path: string
  readonly #writer: Connection
  readonly #reader: Connection
  readonly #turns = new SerialQueue()
  readonly #remembered = new RememberedRows()
  #hasSnapshot = false
  #isVersionChecked = false

  constructor(path: string) {
    this.#path = path
    this.#writer = new Connection(path)
    this.#reader = new Connection(path)
  }

  async all<R extends object = Row>(sql: string, values: readonly Value[]): Promise<R[]> {
    this.#openSnapshot()
    return this.#reader.all<R>(sql, values)
  }

  async first<R extends object = Row>(sql: string, values: readonly Value[]): Promise<R | undefined> {
    this.#openSnapshot()
    return this.#reader.first<R>(sql, values)
  }

  async lookUp<R extends object = Row>(sql: string, values: readonly Value[]): Promise<R | undefined> {
    this.#checkVersion()
    const key = values.length === 1 ? String(values[0]) : values.join('\0')
    const known = this.#remembered.get(sql, key)
    if (known !== undefined) return known as R
    this.#openSnapshot()
    const row = this.#reader.firstNow<R>(sql, values)
    if (row !== undefined) this.#remembered.set(sql, key, row)
    return row
  }

  /**
   * Rows that were looked up are remembered as long as SQLite's counter of commits by other connections (our writer, other
   * processes) does not change. The counter is read once in each turn of the event loop, so a request whose rows are all
   * remembered costs one statement. A commit of this server ends the turn's answer early: see `#openSnapshot`.
   */
  #checkVersion(): void {
    if (this.#isVersionChecked) return
    this.#remembered.keepFor(this.#reader.dataVersion())
    this.#isVersionChecked = true
    setImmediate(this.#endTurn)
  }

  /**
   * The reads of one turn of the event loop share one snapshot: taking and leaving the database's locks costs more than
   * the look-up itself. The snapshot ends with the turn, or before it with the next commit of this server. So a read that
   * begins after a write of this server was acknowledged always sees it. A commit of another process is seen from the next
   * turn on.
   *
   * The snapshot ends before the commit and not after it. SQLite copies its log into the database at a commit, as far as no
   * reader needs it, and begins the log anew once all of it is copied. With a reader at every commit the log grows for ever.
   */
  #openSnapshot(): void {
    if (this.#hasSnapshot) return
    this.#reader.control('BEGIN')
    this.#hasSnapshot = true
    // Another process may have committed since the version was checked.
    this.#isVersionChecked = false
    this.#checkVersion()
  }

  readonly #endTurn = (): void => {
    this.#isVersionChecked = false
    if (!this.#hasSnapshot) return
    this.#hasSnapshot = false
    this.#reader.endReading()
  }

  run(sql: string, values: readonly Value[]): Promise<number> {
    return this.#turns.run(() => {
      this.#endTurn()
      return this.#writer.run(sql, values)
    })
  }

  returning<R extends object = Row>(sql: string, values: readonly Value[]): Promise<R[]> {
    return this.#turns.run(() => {
      this.#endTurn()
      return this.#writer.all<R>(sql, values)
    })
  }

  transaction<T>(work: (queries: Queryable) => Promise<T>): Promise<T> {
    return this.#turns.run(async () => {
      // IMMEDIATE: a transaction that reads first and writes later would be refused if another process wrote between.
      this.#writer.control('BEGIN IMMEDIATE')
      try {
        const result = await work(this.#writer)
        this.#endTurn()
        this.#writer.control('COMMIT')
        return result
      } catch (error) {
        this.#writer.rollback()
        throw error
      }
    })
  }

  async snapshot<T>(work: (queries: Queryable) => Promise<T>): Promise<T> {
    const own = new Connection(this.#path)
    try {
      own.control('BEGIN')
      // The moment is that of the first look.
      own.firstNow('SELECT count(*) AS tables FROM sqlite_master', [])
      return await work(own)
    } finally {
      own.rollback()
      own.close()
    }
  }

  async hasTable(name: string): Promise<boolean> {
    const row = await this.first("SELECT 1 AS found FROM sqlite_master WHERE type = 'table' AND name = $1", [name])
    return row !== undefined
  }

  async script(sql: string): Promise<void> {
    await this.#turns.run(async () => this.#writer.script(sql))
  }

  /** Each step is a transaction that begins as a writer, and looks before it leaps: that is enough here. */
  alone<T>(work: () => Promise<T>): Promise<T> {
    return work()
  }

  async close(): Promise<void> {
    await this.#turns.run(async () => {
      this.#endTurn()
      this.#reader.close()
      this.#writer.close()
    })
  }
}

class Connection implements Queryable {
  readonly #sqlite: Sqlite
  readonly #statements = new Map<string, Statement>()

  constructor(path: string) {
    this.#sqlite = attempt(() => new Sqlite(path, { create: true, readwrite: true }))
    attempt(() => this.#configure())
  }

  #configure(): void {
    this.#sqlite.run(`PRAGMA busy_timeout = ${busyTimeoutMs}`)
    this.#sqlite.run('PRAGMA journal_mode = WAL')
    this.#sqlite.run('PRAGMA synchronous = FULL')
    this.#sqlite.run('PRAGMA foreign_keys = ON')
    this.#sqlite.run('PRAGMA cache_size = -65536')
    // A log that grew while another process read for long becomes small again.
    this.#sqlite.run(`PRAGMA journal_size_limit = ${logBytesMax}`)
    const settings = ['journal_mode', 'synchronous', 'foreign_keys'].map((name) => this.#pragma(name))
    if (String(settings) !== 'wal,2,1') throw new Error(`SQLite did not take our settings: ${String(settings)}`)
  }

  #pragma(name: string): unknown {
    return this.#sqlite.prepare<Record<string, unknown>, []>(`PRAGMA ${name}`).get()?.[name]
  }

  async all<R extends object = Row>(sql: string, values: readonly Value[]): Promise<R[]> {
    return attempt(() => this.#prepared(sql).all(...values) as R[])
  }

  async first<R extends object = Row>(sql: string, values: readonly Value[]): Promise<R | undefined> {
    return this.firstNow<R>(sql, values)
  }

  async lookUp<R extends object = Row>(sql: string, values: readonly Value[]): Promise<R | undefined> {
    return this.firstNow<R>(sql, values)
  }

  firstNow<R extends object = Row>(sql: string, values: readonly Value[]): R | undefined {
    return attempt(() => (this.#prepared(sql).get(...values) as R | null) ?? undefined)
  }

  /** Changes with every commit of another connection; read inside a transaction, it belongs to the snapshot. */
  dataVersion(): unknown {
    return this.firstNow<{ data_version: unknown }>('PRAGMA data_version', [])?.data_version
  }

  async run(sql: string, values: readonly Value[]): Promise<number> {
    return attempt(() => this.#prepared(sql).run(...values).changes)
  }

  async returning<R extends object = Row>(sql: string, values: readonly Value[]): Promise<R[]> {
    return this.all<R>(sql, values)
  }

  /** BEGIN and COMMIT. At once, not a turn later: their refusal must be caught where they stand. */
  control(sql: string): void {
    attempt(() => this.#prepared(sql).run())
  }

  script(sql: string): void {
    attempt(() => this.#sqlite.run(translate(sql, dialect)))
  }

  /**
   * Ends a transaction that has only read. It never throws: a file that cannot be read any more is reported by the next read,
   * and an error here would reach nobody who could answer a request.
   */
  endReading(): void {
    try {
      this.control('COMMIT')
    } catch {
      try {
        this.rollback()
      } catch {
        // The next read says what is wrong with the file.
      }
    }
  }

  rollback(): void {
    // The engine may have rolled back by itself (a full disk); then there is nothing left to do.
    if (this.#sqlite.inTransaction) this.#sqlite.run('ROLLBACK')
  }

  close(): void {
    for (const statement of this.#statements.values()) statement.finalize()
    this.#statements.clear()
    this.#sqlite.close()
  }

  #prepared(sql: string): Statement {
    const known = this.#statements.get(sql)
    if (known !== undefined) return known
    // SQLite reads `$1` as a name and numbers it by appearance; `?1` is the first value wherever it stands.
    const statement = this.#sqlite.prepare(translate(sql, dialect).replaceAll(/\$(\d+)/g, '?$1'))
    this.#statements.set(sql, statement)
    return statement
  }
}

/**
 * The file is locked, full, out of reach, damaged, or not a database, or memory is short. Such faults may pass or are cured outside
 * of this program. All others, such as a table that is missing, are mistakes in it.
 */
const passingCodes =
  /^SQLITE_(BUSY|LOCKED|FULL|IOERR|CANTOPEN|READONLY|PERM|AUTH|PROTOCOL|NOLFS|NOMEM|CORRUPT|NOTADB)(_|$)/

/** Turns faults that may pass into `Unavailable`, with the fault as the cause. All others go on to the caller as they are. */
function attempt<T>(act: () => T): T {
  try {
    return act()
  } catch (error) {
    // Bun throws a RangeError when the database was closed: the process is about to end.
    const isTrouble = error instanceof SQLiteError ? passingCodes.test(error.code ?? '') : error instanceof RangeError
    throw isTrouble ? new Unavailable('the metadata store', { cause: error }) : error
  }
}
