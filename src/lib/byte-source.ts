interface StreamReader {
  read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>
  cancel(reason: unknown): Promise<void>
}

/** How slow a sender may be, and which errors tell that it was too slow or that it went away. */
export interface Pace {
  readonly bytesPerSecondMin: number
  readonly windowMs: number
  readonly tooSlow: () => Error
  readonly broken: (cause: unknown) => Error
}

/**
 * The bytes of one sender, chunk by chunk, read once. One that sends less than it must within a window is cut off, but
 * only while we wait for it: our own slowness (a busy disk) is not held against the sender.
 */
export class ByteSource implements AsyncIterable<Uint8Array> {
  readonly #reader: StreamReader | undefined
  readonly #pace: Pace
  #bytesInWindow = 0
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
    const watch = setInterval(() => this.#checkPace(), this.#pace.windowMs)
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
    const wanted = (this.#pace.bytesPerSecondMin * this.#pace.windowMs) / 1000
    if (this.#isWaiting && this.#bytesInWindow < wanted) this.cancel(this.#pace.tooSlow())
    this.#bytesInWindow = 0
  }
}
