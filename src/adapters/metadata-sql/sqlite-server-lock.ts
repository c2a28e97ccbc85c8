import { SQLiteError, Database as Sqlite } from 'bun:sqlite'

/** Another process may hold the lock for a moment: to bring the schema up to date, or to see whether a server runs. */
const waitMs = 1_000

/** The lock is held by another process. */
export class ServerLockTaken extends Error {
  override readonly name = 'ServerLockTaken'
}

/**
 * Says that a server runs on this folder, for as long as its process lives. It is a lock of the operating system, so a
 * crash does not leave it behind. Commands such as `berth gc` work beside a server and do not take it, unless they have to
 * change the schema.
 */
export class SqliteServerLock {
  readonly #sqlite: Sqlite

  constructor(path: string) {
    this.#sqlite = new Sqlite(path, { create: true, readwrite: true })
    try {
      this.#sqlite.run(`PRAGMA busy_timeout = ${waitMs}`)
      this.#sqlite.run('PRAGMA locking_mode = EXCLUSIVE')
      this.#sqlite.run('BEGIN EXCLUSIVE')
    } catch (error) {
      this.#sqlite.close()
      throw isBusy(error) ? new ServerLockTaken('another process holds the lock', { cause: error }) : error
    }
  }

  /** Whether a server holds the lock now. */
  static isHeld(path: string): boolean {
    let sqlite: Sqlite | undefined
    try {
      sqlite = new Sqlite(path, { readonly: true })
      sqlite.run('SELECT count(*) FROM sqlite_master')
      return false
    } catch (error) {
      // Otherwise there is no such file yet, or it is not ours to read.
      return isBusy(error)
    } finally {
      sqlite?.close()
    }
  }

  release(): void {
    this.#sqlite.close()
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof SQLiteError && error.code === 'SQLITE_BUSY'
}
