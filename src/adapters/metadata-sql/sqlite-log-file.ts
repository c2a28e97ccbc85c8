import { close, fdatasync, open } from 'node:fs'
import { dirname } from 'node:path'
import { syncFolder } from '../../lib/durable-files.ts'

interface SyncedFile {
  sync(): Promise<void>
  close(): Promise<void>
}

type OpenFile = (path: string) => Promise<SyncedFile>

/** A descriptor and not a `FileHandle`, because Bun reports each `FileHandle` that is not closed before it is garbage. */
function openFile(path: string): Promise<SyncedFile> {
  return new Promise((resolve, reject) => {
    open(path, 'r', (fault, descriptor) => {
      if (fault) return reject(fault)
      resolve({
        sync: () => settle((done) => fdatasync(descriptor, done)),
        close: () => settle((done) => close(descriptor, done)),
      })
    })
  })
}

function settle(call: (done: (fault: Error | null | undefined) => void) => void): Promise<void> {
  return new Promise((resolve, reject) => call((fault) => (fault ? reject(fault) : resolve())))
}

/**
 * The write-ahead log of SQLite as a file. It makes commits durable outside of the event loop, many with one system call.
 *
 * One call runs at a time. It covers the commits that were made before it began. A later commit waits for the next call,
 * together with all others that were made in the meantime.
 */
export class SqliteLogFile {
  readonly #path: string
  readonly #openFile: OpenFile
  #file: ReturnType<OpenFile> | undefined
  #running: Promise<void> | undefined
  #next: Promise<void> | undefined

  /** Tests pass their own `open`. */
  constructor(path: string, open: OpenFile = openFile) {
    this.#path = path
    this.#openFile = open
  }

  /** Resolves when every commit that was made before this call is on the disk. */
  sync(): Promise<void> {
    if (this.#running === undefined) {
      this.#running = this.#sync().finally(() => {
        this.#running = undefined
      })
      return this.#running
    }
    this.#next ??= this.#running
      .catch(() => undefined)
      .then(() => {
        this.#next = undefined
        return this.sync()
      })
    return this.#next
  }

  async close(): Promise<void> {
    await this.#running?.catch(() => undefined)
    const file = await this.#file?.catch(() => undefined)
    await file?.close()
  }

  async #sync(): Promise<void> {
    this.#file ??= this.#open()
    const file = await this.#file
    await file.sync()
  }

  /** The log exists from the first commit on, until the last connection is closed. Its name must be durable too. */
  async #open(): ReturnType<OpenFile> {
    try {
      const file = await this.#openFile(this.#path)
      await syncFolder(dirname(this.#path))
      return file
    } catch (error) {
      this.#file = undefined
      throw error
    }
  }
}
