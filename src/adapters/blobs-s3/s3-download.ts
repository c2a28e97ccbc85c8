import type { ByteRange } from '../../ports/blob-store.ts'
import type { DownloadPlace } from './download-places.ts'
import type { S3Exchange } from './s3-exchange.ts'
import { S3Fault } from './s3-fault.ts'

/** What a download needs of those who began it. */
export interface DownloadNeeds {
  /** The bytes that are still wanted; undefined when the object is gone. One try. */
  reopen(range: ByteRange): Promise<S3Exchange | undefined>
  pause(tries: number, fault: S3Fault): Promise<boolean>
  /** The longest wait for the next bytes. */
  readonly waitMs: number
  /** How often in a row it may break without a byte in between. */
  readonly triesMax: number
  /** Of a reader that takes its time; none: it is read as fast as it comes. */
  readonly place: Pick<DownloadPlace, 'begin' | 'asked' | 'gave'> | undefined
  /** Ended, in whatever way. Called once. */
  finish(): void
}

const operation = 'GetObject'

/**
 * The bytes of `range`, from an answer that has begun. An answer that breaks off is taken up where it broke. Bytes are
 * fetched only as they are asked for, and only while they are does time count: whoever reads slowly stops the sender, by
 * way of the socket.
 */
export function downloadOf(begun: S3Exchange, range: ByteRange, needs: DownloadNeeds): ReadableStream<Uint8Array> {
  const download = new Download(begun, range, needs)
  return new ReadableStream<Uint8Array>(
    {
      start: (sink) => needs.place?.begin(() => download.cut(sink)),
      pull: (sink) => download.pull(sink),
      cancel: () => download.cancel(),
    },
    { highWaterMark: 0 },
  )
}

class Download {
  readonly #needs: DownloadNeeds
  readonly #last: number
  #at: number
  #exchange: S3Exchange | undefined
  #breaks = 0
  #isCancelled = false

  constructor(begun: S3Exchange, range: ByteRange, needs: DownloadNeeds) {
    this.#exchange = begun
    this.#at = range.first
    this.#last = range.last
    this.#needs = needs
  }

  async pull(sink: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    this.#needs.place?.asked()
    try {
      const chunk = await this.#next()
      if (chunk === undefined) return
      sink.enqueue(chunk)
      this.#needs.place?.gave(chunk.length)
      if (this.#at <= this.#last) return
      sink.close()
      this.#needs.finish()
    } catch (error) {
      this.#exchange?.abandon()
      // A cancelled one has told already that it ended.
      if (!this.#isCancelled) this.#needs.finish()
      throw error
    }
  }

  cancel(): void {
    this.#isCancelled = true
    this.#exchange?.abandon()
    this.#needs.finish()
  }

  /** The reader learns that there is more to come, or it would take what it has for all. */
  cut(sink: ReadableStreamDefaultController<Uint8Array>): void {
    this.cancel()
    sink.error(new S3Fault(operation, { code: 'cut', words: 'others wait, and the reader hardly reads' }))
  }

  async #next(): Promise<Uint8Array | undefined> {
    for (;;) {
      try {
        this.#exchange ??= await this.#reopen()
        const chunk = this.#isCancelled ? undefined : await this.#exchange.next(this.#needs.waitMs)
        if (this.#isCancelled) {
          this.#exchange.abandon()
          return undefined
        }
        if (chunk === undefined) throw new S3Fault(operation, { code: 'connection', words: 'ended early' })
        return this.#count(chunk)
      } catch (error) {
        if (this.#isCancelled) return undefined
        await this.#recover(error)
      }
    }
  }

  async #reopen(): Promise<S3Exchange> {
    const exchange = await this.#needs.reopen({ first: this.#at, last: this.#last })
    if (exchange === undefined) throw new S3Fault(operation, { code: 'NoSuchKey', words: 'gone while it was read' })
    return exchange
  }

  async #recover(error: unknown): Promise<void> {
    this.#exchange?.abandon()
    this.#exchange = undefined
    this.#breaks += 1
    const isHopeless = !(error instanceof S3Fault) || !error.isTransient || this.#breaks >= this.#needs.triesMax
    if (isHopeless || !(await this.#needs.pause(this.#breaks, error))) throw error
  }

  #count(chunk: Uint8Array): Uint8Array {
    this.#breaks = 0
    this.#at += chunk.length
    if (this.#at <= this.#last + 1) return chunk
    throw new S3Fault(operation, { code: 'malformed', words: 'more bytes than were asked for' })
  }
}
