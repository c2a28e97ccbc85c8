const capacityMin = 32 * 1024

/** Gathers at most `bytesMax` bytes in one buffer. It grows by powers of two, so that few bytes need little memory. */
export class BoundedBuffer {
  readonly #bytesMax: number
  #buffer = new ArrayBuffer(0)
  #sizeBytes = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  get sizeBytes(): number {
    return this.#sizeBytes
  }

  get isFull(): boolean {
    return this.#sizeBytes === this.#bytesMax
  }

  /** The gathered bytes. Valid until the next change. */
  get bytes(): Uint8Array {
    return new Uint8Array(this.#buffer, 0, this.#sizeBytes)
  }

  /** Copies as many bytes of the chunk as there is room for. Returns the rest of the chunk. */
  fill(chunk: Uint8Array): Uint8Array {
    const taken = chunk.subarray(0, this.#bytesMax - this.#sizeBytes)
    const sizeBytes = this.#sizeBytes + taken.length
    if (sizeBytes > this.#buffer.byteLength) this.#buffer = this.#buffer.transfer(this.#capacityFor(sizeBytes))
    new Uint8Array(this.#buffer, this.#sizeBytes).set(taken)
    this.#sizeBytes = sizeBytes
    return chunk.subarray(taken.length)
  }

  /** Drops the bytes. The next ones use the same memory. */
  clear(): void {
    this.#sizeBytes = 0
  }

  /** Drops the bytes, and frees the memory now instead of when the garbage collector runs. */
  free(): void {
    this.clear()
    this.#buffer = this.#buffer.transfer(0)
  }

  #capacityFor(sizeBytes: number): number {
    return Math.min(this.#bytesMax, 2 ** Math.ceil(Math.log2(Math.max(sizeBytes, capacityMin))))
  }
}
