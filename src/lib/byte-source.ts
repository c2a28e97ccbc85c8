interface StreamReader {
  read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>
  cancel(reason: unknown): Promise<void>
}

/** How slow a sender may be, and the errors for a slow sender and a broken connection. */
export interface Pace {
  readonly bytesPerSecondMin: number
  readonly windowMs: number
  readonly tooSlow: () => Error
  readonly broken: (cause: unknown) => Error
}

/** How many times in a window the source samples whether it waits for the sender. */
const samplesPerWindow = 10

/**
 * The bytes of one sender, in chunks. They can be read once. The reading ends with an error if the sender sends too
 * little within a window. Only the time in which the source waits for the sender counts, so a slow store never makes a
 * sender too slow. A timer samples `samplesPerWindow` times in a window whether the source waits; this costs nothing
 * per chunk.
 */
export class ByteSource implements AsyncIterable<Uint8Array> {
  readonly #reader: StreamReader | undefined
  readonly #pace: Pace
  #bytesInWindow = 0
  /** Samples of this window in which the source waited for the sender. */
  #waitingSamples = 0
  #receivedBytes = 0
  #isWaiting = false
  #isDrained = false
  #reason: Error | undefined

  constructor(stream: ReadableStream<Uint8Array> | null, pace: Pace) {
    this.#reader = stream === null ? undefined : stream.getReader()
    this.#pace = pace
  }

  get receivedBytes(): number {
    return this.#receivedBytes
  }

  /** Whether the last byte was read, so that nothing of this body is left in the connection. */
  get isDrained(): boolean {
    return this.#isDrained
  }

  /** Ends the reading with this error, now or at the next chunk. */
  cancel(reason: Error): void {
    this.#reason ??= reason
    // The result is ignored, because `#next` throws the reason.
    this.#reader?.cancel(reason).catch(() => undefined)
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    if (this.#reader === undefined) return
    const watch = setInterval(() => this.#checkPace(), this.#pace.windowMs / samplesPerWindow)
    try {
      for (;;) {
        const chunk = await this.#next(this.#reader)
        if (chunk === undefined) return
        yield chunk
      }
    } finally {
      clearInterval(watch)
    }
  }

  async #next(reader: StreamReader): Promise<Uint8Array | undefined> {
    this.#isWaiting = true
    try {
      const { done, value } = await reader.read()
      if (this.#reason !== undefined) throw this.#reason
      if (done || value === undefined) {
        this.#isDrained = true
        return undefined
      }
      this.#bytesInWindow += value.length
      this.#receivedBytes += value.length
      return value
    } catch (error) {
      throw this.#reason ?? this.#pace.broken(error)
    } finally {
      this.#isWaiting = false
    }
  }

  #checkPace(): void {
    if (!this.#isWaiting) return
    this.#waitingSamples += 1
    if (this.#waitingSamples < samplesPerWindow) return
    const bytesMin = (this.#pace.bytesPerSecondMin * this.#pace.windowMs) / 1000
    if (this.#bytesInWindow < bytesMin) this.cancel(this.#pace.tooSlow())
    this.#waitingSamples = 0
    this.#bytesInWindow = 0
  }
}

/**
 * Frees a chunk that nothing needs any more, unless it is a part of a larger buffer. Otherwise the garbage collector would
 * free it much later, and each chunk of a large body would need new memory.
 */
export function freeChunk({ buffer, length }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === length && length > 0) buffer.transfer(0)
}
