import { SQLiteError, Database as Sqlite } from 'bun:sqlite'

/** Another process may hold the lock for a moment: to migrate the schema, or to test whether a server runs. */
const defaultWaitMs = 1_000

interface LockOptions {
  /** Several processes can hold the lock at once, but not together with one that holds it alone. */
  readonly isShared?: boolean
  readonly waitMs?: number
}

/** Another process holds the lock. */
export class ServerLockTaken extends Error {
  override readonly name = 'ServerLockTaken'
}

/**
 * The exclusive right to run a server on a data folder. It is a lock of the operating system (held through SQLite), so it ends
 * with the process, even after a crash. Commands such as `berth gc` work beside a server and take the lock only to migrate the
 * schema.
 */
export class SqliteServerLock {
  readonly #sqlite: Sqlite

  constructor(path: string, { isShared = false, waitMs = defaultWaitMs }: LockOptions = {}) {
    this.#sqlite = new Sqlite(path, { create: true, readwrite: true })
    try {
      this.#sqlite.run(`PRAGMA busy_timeout = ${waitMs}`)
      this.#sqlite.run('PRAGMA locking_mode = EXCLUSIVE')
      if (isShared) {
        // A read in a transaction takes SQLite's shared lock.
        this.#sqlite.run('BEGIN')
        this.#sqlite.run('SELECT count(*) FROM sqlite_master')
      } else this.#sqlite.run('BEGIN EXCLUSIVE')
    } catch (error) {
      this.#sqlite.close()
      throw isBusy(error) ? new ServerLockTaken('another process holds the lock', { cause: error }) : error
    }
  }

  /** Whether a process holds the lock now. False if the file is missing or this user may not read it. */
  static isHeld(path: string): boolean {
    let sqlite: Sqlite | undefined
    try {
      sqlite = new Sqlite(path, { readonly: true })
      sqlite.run('SELECT count(*) FROM sqlite_master')
      return false
    } catch (error) {
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
