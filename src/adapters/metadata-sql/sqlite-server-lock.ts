import { SQLiteError, Database as Sqlite } from 'bun:sqlite'

/**
 * Says that a server is running on this folder, for as long as its process lives: a lock of the operating system's, so a
 * crash cannot leave it behind. Commands such as `berth gc` work beside a server and do not take it.
 */
export class SqliteServerLock {
  readonly #sqlite: Sqlite

  constructor(path: string) {
    this.#sqlite = new Sqlite(path, { create: true, readwrite: true })
    try {
      this.#sqlite.run('PRAGMA locking_mode = EXCLUSIVE')
      this.#sqlite.run('BEGIN EXCLUSIVE')
    } catch (error) {
      this.#sqlite.close()
      if (error instanceof SQLiteError && error.code === 'SQLITE_BUSY') {
        throw new Error('another Berth is serving this data folder', { cause: error })
      }
      throw error
    }
  }

  release(): void {
    this.#sqlite.close()
  }
}
