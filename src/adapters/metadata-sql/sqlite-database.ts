import { Unavailable } from '../../oci/errors.ts'
import type { Database, Queryable, Row, Value } from './database.ts'
import { RowCache } from './row-cache.ts'
import { SqliteConnection } from './sqlite-connection.ts'
import { SqliteLogFile } from './sqlite-log-file.ts'
import { SqliteLogIndex } from './sqlite-log-index.ts'
import { SqliteWriter } from './sqlite-writer.ts'

interface SqliteOptions {
  /** Tests pass their own. */
  readonly log?: SqliteLogFile
  /** The supervisor of this process and other workers have the database open. */
  readonly isWorker?: boolean
}

/**
 * SQLite in this process, over two connections: one writes (`SqliteWriter`), the other one reads. So a read never sees rows
 * that are not committed, although a transaction lasts for several iterations of the event loop.
 *
 * Snapshots. All reads of one iteration share a snapshot, because taking and releasing the locks of the database costs
 * more than a look-up. The snapshot ends with the iteration, or earlier, before the next commit of this process. At a
 * commit, SQLite copies its log into the database as far as no reader needs the log, and begins the log again once all of
 * it is copied. With a reader at every commit, the log would grow forever.
 *
 * Durability. Changes of one iteration share a transaction. COMMIT makes their rows visible. They are acknowledged when
 * `SqliteLogFile` has synced the write-ahead log; meanwhile the next transactions run. Whatever they commit is behind the
 * earlier rows in the log, so no durable row depends on one that is not.
 *
 * Cached rows. `lookUp` keeps rows until another connection has committed: the writer of this process or another process.
 * A server with one process asks SQLite for its counter of commits once in each iteration. It sees the commits of
 * commands, such as `berth gc`, from the next iteration on.
 *
 * Workers. Each worker compares `SqliteLogIndex` before each read, so it sees the commits of the others at once. Once in
 * each iteration is not enough: Bun reads a request from a new connection in the iteration that accepts it, and the
 * answer that the client waited for may have been sent by another worker after this iteration began.
 */
export class SqliteDatabase implements Database {
  readonly engine = 'sqlite'
  readonly #path: string
  readonly #writer: SqliteConnection
  readonly #reader: SqliteConnection
  readonly #writes: SqliteWriter
  readonly #cache = new RowCache()
  readonly #log: SqliteLogFile
  readonly #index: SqliteLogIndex | undefined
  /** A sync has failed. The kernel may have dropped pages of the log, and a second sync would not report it. */
  #isLogDoubtful = false
  #hasSnapshot = false
  #isVersionChecked = false

  constructor(path: string, { log, isWorker = false }: SqliteOptions = {}) {
    this.#path = path
    this.#log = log ?? new SqliteLogFile(`${path}-wal`)
    this.#index = isWorker ? new SqliteLogIndex(path) : undefined
    this.#writer = new SqliteConnection(path, 'caller')
    this.#reader = new SqliteConnection(path)
    this.#writes = new SqliteWriter(this.#writer, this.#endReads)
    this.#copyFormerLog()
  }

  /**
   * A sync of an earlier process may have failed. Unless a reader of another process keeps the log from being copied, this
   * process needs nothing of it.
   */
  #copyFormerLog(): void {
    try {
      this.#writer.checkpoint()
    } catch {
      this.#isLogDoubtful = true
    }
  }

  async all<R extends object = Row>(sql: string, values: readonly Value[]): Promise<R[]> {
    this.#openSnapshot()
    return this.#reader.all<R>(sql, values)
  }

  async first<R extends object = Row>(sql: string, values: readonly Value[]): Promise<R | undefined> {
    this.#openSnapshot()
    return this.#reader.first<R>(sql, values)
  }

  lookUp<R extends object = Row>(sql: string, values: readonly Value[]): R | undefined {
    this.#checkVersion()
    const key = values.length === 1 ? String(values[0]) : values.join('\0')
    const cached = this.#cache.get(sql, key)
    if (cached !== undefined) return cached as R
    this.#openSnapshot()
    const row = this.#reader.firstNow<R>(sql, values)
    if (row !== undefined) this.#cache.set(sql, key, row)
    return row
  }

  /** Drops the snapshot and the cached rows if there were commits that they lack. */
  #checkVersion(): void {
    if (this.#index === undefined) this.#checkVersionOnce()
    else if (this.#index.hasChanged()) {
      this.#endReads()
      this.#cache.clear()
    }
  }

  #checkVersionOnce(): void {
    if (this.#isVersionChecked) return
    this.#cache.keepFor(this.#reader.dataVersion())
    this.#isVersionChecked = true
    setImmediate(this.#endReads)
  }

  #openSnapshot(): void {
    if (this.#index !== undefined) this.#checkVersion()
    if (this.#hasSnapshot) return
    this.#reader.control('BEGIN')
    this.#hasSnapshot = true
    setImmediate(this.#endReads)
    if (this.#index !== undefined) return
    // Another process may have committed since the version was checked.
    this.#isVersionChecked = false
    this.#checkVersionOnce()
  }

  /** Ends the snapshot. The next look-up checks the version again. */
  readonly #endReads = (): void => {
    this.#isVersionChecked = false
    if (!this.#hasSnapshot) return
    this.#hasSnapshot = false
    this.#reader.endReading()
  }

  async run(sql: string, values: readonly Value[]): Promise<number> {
    const changes = await this.#writes.run((queries) => queries.run(sql, values))
    await this.flush()
    return changes
  }

  async returning<R extends object = Row>(sql: string, values: readonly Value[]): Promise<R[]> {
    const rows = await this.#writes.run((queries) => queries.returning<R>(sql, values))
    await this.flush()
    return rows
  }

  async transaction<T>(work: (queries: Queryable) => Promise<T>, { mayBeLost = false } = {}): Promise<T> {
    const result = await this.#writes.run(work)
    if (!mayBeLost) await this.flush()
    return result
  }

  /** All commits so far are on the disk: those of this process, and those of others that it has seen. */
  async flush(): Promise<void> {
    try {
      if (!this.#isLogDoubtful) await this.#log.sync()
      // An earlier sync may have failed since this call began. The rows of this caller are behind its rows in the log.
      if (this.#isLogDoubtful) await this.#recoverLog()
    } catch (error) {
      this.#isLogDoubtful = true
      throw error instanceof Unavailable ? error : new Unavailable('metadata-store', { cause: error })
    }
  }

  /** Writes the rows of the log into the database file and syncs it. From then on, the log is not needed for them. */
  #recoverLog(): Promise<void> {
    return this.#writes.runAlone(async () => {
      this.#endReads()
      if (!this.#writer.checkpoint())
        throw new Error('a reader, or another process that copies the log, keeps the log from being copied')
      this.#isLogDoubtful = false
    })
  }

  async snapshot<T>(work: (queries: Queryable) => Promise<T>): Promise<T> {
    const connection = new SqliteConnection(this.#path)
    try {
      connection.control('BEGIN')
      // The first read determines the moment of the snapshot.
      connection.firstNow('SELECT count(*) AS tables FROM sqlite_master', [])
      return await work(connection)
    } finally {
      connection.rollback()
      connection.close()
    }
  }

  async hasTable(name: string): Promise<boolean> {
    const row = await this.first("SELECT 1 AS found FROM sqlite_master WHERE type = 'table' AND name = $1", [name])
    return row !== undefined
  }

  /** Needs no lock: each migration is a transaction that is a writer from its beginning, and checks what is applied. */
  withMigrationLock<T>(work: () => Promise<T>): Promise<T> {
    return work()
  }

  async close(): Promise<void> {
    await this.#writes.runAlone(async () => {
      this.#endReads()
      await this.#log.close()
      this.#reader.close()
      this.#writer.close()
    })
  }
}
