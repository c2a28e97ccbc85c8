import { SQLiteError, Database as Sqlite, type Statement } from 'bun:sqlite'
import { Unavailable } from '../../oci/errors.ts'
import { type Dialect, type Queryable, type Row, translate, type Value } from './database.ts'

const dialect: Dialect = {
  words: {
    now: "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
    outbox: 'events',
    id: 'INTEGER PRIMARY KEY AUTOINCREMENT',
    number: 'INTEGER',
    text: 'TEXT',
    bytes: 'BLOB',
    table: 'STRICT',
  },
  in: (parameter) => `IN (SELECT value FROM json_each(${parameter}))`,
  each: (parameter) => `json_each(${parameter}) AS each`,
  eachText: (parameter) => `json_each(${parameter}) AS each`,
  lockRows: () => '',
  lockTable: () => 'SELECT 1',
}

/**
 * A COMMIT that makes the log longer than this copies it into the database file, which needs two syncs. A page that was
 * written often is copied once, so a longer log costs less. It is not longer than one block of SQLite's index of the log.
 */
const logPagesMax = 4_000
const logBytesMax = logPagesMax * 4096

/** How long a statement waits for another process (`berth gc` beside a server). */
const busyTimeoutMs = 5_000

/** `commit`: COMMIT returns when the commit is on the disk. `caller`: the caller syncs the write-ahead log (`SqliteLogFile`). */
export type SyncedBy = 'commit' | 'caller'

interface CheckpointRow {
  /** 1 while another process copies the log. Both sizes are -1 then. */
  readonly busy: number
  /** The size of the log, and how much of it is copied, in pages. */
  readonly log: number
  readonly checkpointed: number
}

/** One connection to SQLite. Its calls are synchronous; the promises are there for the interface. */
export class SqliteConnection implements Queryable {
  readonly #sqlite: Sqlite
  readonly #statements = new Map<string, Statement>()

  constructor(path: string, syncedBy: SyncedBy = 'commit') {
    this.#sqlite = attempt(() => new Sqlite(path, { create: true, readwrite: true }))
    attempt(() => this.#configure(syncedBy))
  }

  /** The settings are set and checked. The defaults differ between builds of SQLite, and lose acknowledged commits. */
  #configure(syncedBy: SyncedBy): void {
    this.#sqlite.run(`PRAGMA busy_timeout = ${busyTimeoutMs}`)
    this.#sqlite.run('PRAGMA journal_mode = WAL')
    // In WAL mode, NORMAL differs from FULL in one point: COMMIT does not sync the log. A checkpoint still does.
    this.#sqlite.run(`PRAGMA synchronous = ${syncedBy === 'commit' ? 'FULL' : 'NORMAL'}`)
    this.#sqlite.run('PRAGMA foreign_keys = ON')
    this.#sqlite.run('PRAGMA cache_size = -65536')
    this.#sqlite.run(`PRAGMA wal_autocheckpoint = ${logPagesMax}`)
    // The log grows while another process reads for a long time. This makes it small again.
    this.#sqlite.run(`PRAGMA journal_size_limit = ${logBytesMax}`)
    const settings = ['journal_mode', 'synchronous', 'foreign_keys'].map((name) => this.#pragma(name))
    if (String(settings) !== `wal,${syncedBy === 'commit' ? 2 : 1},1`)
      throw new Error(`SQLite did not accept our settings: ${String(settings)}`)
  }

  #pragma(name: string): unknown {
    return this.#sqlite.prepare<Record<string, unknown>, []>(`PRAGMA ${name}`).get()?.[name]
  }

  async all<R extends object = Row>(sql: string, values: readonly Value[]): Promise<R[]> {
    return this.allNow<R>(sql, values)
  }

  async first<R extends object = Row>(sql: string, values: readonly Value[]): Promise<R | undefined> {
    return this.firstNow<R>(sql, values)
  }

  lookUp<R extends object = Row>(sql: string, values: readonly Value[]): R | undefined {
    return this.firstNow<R>(sql, values)
  }

  firstNow<R extends object = Row>(sql: string, values: readonly Value[]): R | undefined {
    return attempt(() => (this.#prepare(sql).get(...values) as R | null) ?? undefined)
  }

  allNow<R extends object = Row>(sql: string, values: readonly Value[]): R[] {
    return attempt(() => this.#prepare(sql).all(...values) as R[])
  }

  async run(sql: string, values: readonly Value[]): Promise<number> {
    return this.runNow(sql, values)
  }

  runNow(sql: string, values: readonly Value[]): number {
    return attempt(() => this.#prepare(sql).run(...values).changes)
  }

  async returning<R extends object = Row>(sql: string, values: readonly Value[]): Promise<R[]> {
    return this.all<R>(sql, values)
  }

  /** Changes with every commit of another connection. Inside a transaction it is the version of the snapshot. */
  dataVersion(): unknown {
    return this.firstNow<{ data_version: unknown }>('PRAGMA data_version', [])?.data_version
  }

  /**
   * Copies the log into the database file and syncs both. Returns whether all of the log was copied: not while a reader
   * needs an older state of the file, or another process copies the log.
   */
  checkpoint(): boolean {
    const done = this.firstNow<CheckpointRow>('PRAGMA wal_checkpoint(PASSIVE)', [])
    return done?.busy === 0 && done.log === done.checkpointed
  }

  /** BEGIN and COMMIT. They are synchronous, so that their errors are caught where the caller stands. */
  control(sql: string): void {
    attempt(() => this.#prepare(sql).run())
  }

  /**
   * Ends a transaction that has only read. It never throws: the next read reports a file that cannot be read any more, and no
   * caller could handle an error here.
   */
  endReading(): void {
    try {
      this.control('COMMIT')
    } catch {
      try {
        this.rollback()
      } catch {
        // The next read reports the fault.
      }
    }
  }

  /** False also after SQLite has rolled back by itself, for example because the disk is full. */
  get isInTransaction(): boolean {
    return this.#sqlite.inTransaction
  }

  rollback(): void {
    if (this.isInTransaction) this.#sqlite.run('ROLLBACK')
  }

  close(): void {
    for (const statement of this.#statements.values()) statement.finalize()
    this.#statements.clear()
    this.#sqlite.close()
  }

  #prepare(sql: string): Statement {
    const prepared = this.#statements.get(sql)
    if (prepared !== undefined) return prepared
    // SQLite takes `$1` for a name and numbers it by its first use; `?1` is the first value wherever it is.
    const statement = this.#sqlite.prepare(translate(sql, dialect).replaceAll(/\$(\d+)/g, '?$1'))
    this.#statements.set(sql, statement)
    return statement
  }
}

/**
 * The file is locked, full, out of reach, damaged, or no database, or memory is short. Such faults pass or are repaired outside
 * of this program. All others, such as a missing table, are bugs.
 */
const unavailableCodes =
  /^SQLITE_(BUSY|LOCKED|FULL|IOERR|CANTOPEN|READONLY|PERM|AUTH|PROTOCOL|NOLFS|NOMEM|CORRUPT|NOTADB)(_|$)/

/** Wraps faults of the environment in `Unavailable`. Throws all others as they are. */
function attempt<T>(act: () => T): T {
  try {
    return act()
  } catch (error) {
    // Bun throws a RangeError if the database was closed: the process is about to end.
    const isUnavailable =
      error instanceof SQLiteError ? unavailableCodes.test(error.code ?? '') : error instanceof RangeError
    throw isUnavailable ? new Unavailable('metadata-store', { cause: error }) : error
  }
}
