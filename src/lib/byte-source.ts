interface StreamReader {
  read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>
  cancel(reason: unknown): Promise<void>
}

/** How slow a sender may be, and which errors say that it was too slow or that it went away. */
export interface Pace {
  readonly bytesPerSecondMin: number
  readonly windowMs: number
  readonly tooSlow: () => Error
  readonly broken: (cause: unknown) => Error
}

/** How many times in a window the source looks whether it waits for the sender. */
const looksPerWindow = 10

/**
 * The bytes of one sender, chunk by chunk, read once. A sender that sends less than it must within a window is cut off.
 * The window counts only the time in which this source waits for the sender. The time that the reader needs to store a
 * chunk does not count, so a slow store never makes a sender too slow. The time is measured in samples: a timer looks
 * `looksPerWindow` times in a window whether the source waits, and this costs nothing for each chunk.
 */
export class ByteSource implements AsyncIterable<Uint8Array> {
  readonly #reader: StreamReader | undefined
  readonly #pace: Pace
  #bytesInWindow = 0
  /** Looks in this window that found the source waiting for the sender. */
  #looksInWindow = 0
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

  /** Whether the sender's last byte was read: nothing of this body is left in the connection. */
  get isDrained(): boolean {
    return this.#isDrained
  }

  /** Ends the reading with this error, now or at the next chunk. */
  cancel(reason: Error): void {
    this.#reason ??= reason
    // What the cancelled stream says is of no interest: the reader below throws the reason.
    this.#reader?.cancel(reason).catch(() => undefined)
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    if (this.#reader === undefined) return
    const watch = setInterval(() => this.#checkPace(), this.#pace.windowMs / looksPerWindow)
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
    this.#looksInWindow += 1
    if (this.#looksInWindow < looksPerWindow) return
    const wanted = (this.#pace.bytesPerSecondMin * this.#pace.windowMs) / 1000
    if (this.#bytesInWindow < wanted) this.cancel(this.#pace.tooSlow())
    this.#looksInWindow = 0
    this.#bytesInWindow = 0
  }
}
