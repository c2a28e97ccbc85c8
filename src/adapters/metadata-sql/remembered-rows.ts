const rowsMax = 20_000
const bytesMax = 64 * 1024 * 1024

/** Rows that were looked up, for as long as the version of the database that they belong to. Bounded in number and size. */
export class RememberedRows {
  /** By statement, then by its values: a statement's text is long, and its hash is known to the engine already. */
  readonly #rows = new Map<string, Map<string, object>>()
  #count = 0
  #bytes = 0
  #version: unknown

  /** Forgets everything that belongs to another version. */
  keepFor(version: unknown): void {
    if (version === this.#version) return
    this.#version = version
    this.#clear()
  }

  get(sql: string, key: string): object | undefined {
    return this.#rows.get(sql)?.get(key)
  }

  set(sql: string, key: string, row: object): void {
    const bytes = sizeOf(row)
    if (this.#count >= rowsMax || this.#bytes + bytes > bytesMax) this.#clear()
    if (bytes > bytesMax) return
    let rows = this.#rows.get(sql)
    if (rows === undefined) {
      rows = new Map()
      this.#rows.set(sql, rows)
    }
    rows.set(key, row)
    this.#count += 1
    this.#bytes += bytes
  }

  #clear(): void {
    this.#rows.clear()
    this.#count = 0
    this.#bytes = 0
  }
}

/** Only byte columns are worth counting: texts are short, and the number of rows is bounded. */
function sizeOf(row: object): number {
  let bytes = 0
  for (const value of Object.values(row)) if (value instanceof Uint8Array) bytes += value.length
  return bytes
}
