const rowsMax = 20_000
const bytesMax = 64 * 1024 * 1024

/** Rows of one version of the database, by statement and values. Limited in number and size; when full, it is emptied. */
export class RowCache {
  /** By statement, then by values: a long statement is hashed once only, and not again with each key. */
  readonly #rows = new Map<string, Map<string, object>>()
  #count = 0
  #bytes = 0
  #version: unknown

  /** Empties the cache unless its rows belong to this version. */
  keepFor(version: unknown): void {
    if (version === this.#version) return
    this.#version = version
    this.clear()
  }

  get(sql: string, key: string): object | undefined {
    return this.#rows.get(sql)?.get(key)
  }

  set(sql: string, key: string, row: object): void {
    const bytes = sizeOf(row)
    if (this.#count >= rowsMax || this.#bytes + bytes > bytesMax) this.clear()
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

  clear(): void {
    this.#rows.clear()
    this.#count = 0
    this.#bytes = 0
  }
}

/** Counts byte columns only: texts are short, and the number of rows is limited. */
function sizeOf(row: object): number {
  let bytes = 0
  for (const value of Object.values(row)) if (value instanceof Uint8Array) bytes += value.length
  return bytes
}
