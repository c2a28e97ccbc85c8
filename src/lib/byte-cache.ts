/** Bytes by key, limited in their total size. When it is full, the bytes that were used least recently go first. */
export class ByteCache {
  readonly #bytesMax: number
  /** In the order of use. */
  readonly #entries = new Map<string, Uint8Array>()
  #bytes = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  get(key: string): Uint8Array | undefined {
    const bytes = this.#entries.get(key)
    if (bytes === undefined) return undefined
    this.#entries.delete(key)
    this.#entries.set(key, bytes)
    return bytes
  }

  set(key: string, bytes: Uint8Array): void {
    this.#remove(key)
    this.#entries.set(key, bytes)
    this.#bytes += costOf(bytes)
    for (const oldest of this.#entries.keys()) {
      if (this.#bytes <= this.#bytesMax) return
      this.#remove(oldest)
    }
  }

  #remove(key: string): void {
    const bytes = this.#entries.get(key)
    if (bytes === undefined) return
    this.#entries.delete(key)
    this.#bytes -= costOf(bytes)
  }
}

/** The key and the entry need memory too, so many empty values are limited. */
function costOf(bytes: Uint8Array): number {
  return bytes.length + 256
}
