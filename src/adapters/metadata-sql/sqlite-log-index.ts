import { Unavailable } from '../../oci/errors.ts'

// Words of the header (https://www.sqlite.org/walformat.html, "The WAL-Index File Format"), in the order of the machine.
const headerBytes = 48
const [counterWord, checksumWord1, checksumWord2] = [2, 6, 7] as const

/**
 * The index of SQLite's write-ahead log: the file `-shm`, which all processes of a database map into their memory. Each commit
 * changes its header: a counter, and a checksum of all pages in the log. So this class notices the commits of every process
 * without a system call, before a read.
 *
 * It must be opened before the first connection of this process, while another process has the database open. Mapping a
 * file opens and closes it, and the system then drops all locks of this process on the file.
 */
export class SqliteLogIndex {
  readonly #words: Uint32Array
  #counter: number | undefined
  #checksum1: number | undefined
  #checksum2: number | undefined

  constructor(databasePath: string) {
    try {
      this.#words = new Uint32Array(Bun.mmap(`${databasePath}-shm`).buffer, 0, headerBytes / 4)
    } catch (error) {
      throw new Unavailable('metadata-store', { cause: error })
    }
  }

  /** Whether a process has committed since the last call. True for the first call. */
  hasChanged(): boolean {
    const counter = this.#words[counterWord]
    const checksum1 = this.#words[checksumWord1]
    const checksum2 = this.#words[checksumWord2]
    if (counter === this.#counter && checksum1 === this.#checksum1 && checksum2 === this.#checksum2) return false
    this.#counter = counter
    this.#checksum1 = checksum1
    this.#checksum2 = checksum2
    return true
  }
}
