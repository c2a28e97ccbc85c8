import { freeChunk } from '../../lib/byte-source.ts'
import { Slots } from '../../lib/slots.ts'
import type { ByteRange } from '../../ports/blob-store.ts'
import { parseSize, S3Error, type S3Response } from './s3-response.ts'

/** The rate at which readers must read, averaged over a window of time. */
export interface ReaderPace {
  readonly bytesPerSecondMin: number
  readonly windowMs: number
}

export interface DownloadSlotSettings {
  readonly slotsMax: number
  readonly queueMax: number
  readonly waitMaxMs: number
  /** Without it, a reader keeps its slot as long as it likes. */
  readonly pace: ReaderPace | undefined
}

/** While others wait for a slot, its reader must read this many times faster than the minimum. */
const scarceFactor = 16

const checksPerWindow = 6

/**
 * Limits how many downloads run at once. Downloads last as long as their readers like, so a few hundred slow readers could
 * block all others. While a reader waits for a slot, the slowest download is cut if it is too slow; its client can continue
 * with `Range`. While there are free slots, no download is cut.
 */
export class DownloadSlots {
  readonly #pace: ReaderPace | undefined
  readonly #slots: Slots
  readonly #now: () => number
  readonly #taken = new Set<DownloadSlot>()
  #timer: Timer | undefined

  constructor(settings: DownloadSlotSettings, now: () => number = () => performance.now()) {
    this.#pace = settings.pace
    this.#slots = new Slots(settings.slotsMax, settings.queueMax, settings.waitMaxMs)
    this.#now = now
  }

  /** Rejects with `NoSlot` if too many wait already, or if the wait was too long. */
  async take(): Promise<DownloadSlot> {
    const taking = this.#slots.take()
    this.#cutSlowReaders()
    const release = await taking
    const windowMs = this.#pace?.windowMs ?? Number.POSITIVE_INFINITY
    const slot: DownloadSlot = new DownloadSlot(windowMs, this.#now, () => {
      this.#taken.delete(slot)
      release()
    })
    this.#taken.add(slot)
    return slot
  }

  /** Repeats itself as long as a reader waits for a slot. */
  #cutSlowReaders(): void {
    if (this.#pace === undefined) return
    const { bytesPerSecondMin, windowMs } = this.#pace
    const bytesMin = (bytesPerSecondMin * scarceFactor * windowMs) / 1000
    let isCut = true
    while (isCut && this.#slots.waiting > 0) isCut = this.#cutSlowest(bytesMin)
    if (this.#slots.waiting > 0) {
      this.#timer ??= setInterval(() => this.#cutSlowReaders(), windowMs / checksPerWindow)
    } else {
      clearInterval(this.#timer)
      this.#timer = undefined
    }
  }

  #cutSlowest(bytesMin: number): boolean {
    let slowest: DownloadSlot | undefined
    let least = bytesMin
    for (const slot of this.#taken) {
      const bytes = slot.bytesInWindow()
      if (bytes === undefined || bytes >= least) continue
      slowest = slot
      least = bytes
    }
    slowest?.cut()
    return slowest !== undefined
  }
}

/** The right to one download. It measures the rate of the reader, without the time in which the reader waits for S3. */
export class DownloadSlot {
  readonly #windowMs: number
  readonly #now: () => number
  readonly #release: () => void
  #cutDownload: (() => void) | undefined
  /** Read in the current window, and in the window before. */
  #bytes = 0
  #bytesBefore: number | undefined
  #readerMs = 0
  #deliveredAt: number | undefined

  constructor(windowMs: number, now: () => number, release: () => void) {
    this.#windowMs = windowMs
    this.#now = now
    this.#release = release
  }

  /** The download has begun. `cut` ends it before its end, and releases the slot. Before `begin`, it cannot be cut. */
  begin(cut: () => void): void {
    this.#cutDownload = cut
  }

  /** The reader got so many bytes: the time until it wants more counts. */
  delivered(bytes: number): void {
    this.#bytes += bytes
    this.#deliveredAt = this.#now()
  }

  /** The reader wants more: the time until S3 has delivered does not count. */
  requested(): void {
    this.#count()
    this.#deliveredAt = undefined
  }

  /** Of the last complete window, or of the current one if that is more already; undefined before the first is complete. */
  bytesInWindow(): number | undefined {
    this.#count()
    if (this.#bytesBefore === undefined || this.#cutDownload === undefined) return undefined
    return Math.max(this.#bytesBefore, this.#bytes)
  }

  #count(): void {
    if (this.#deliveredAt === undefined) return
    const now = this.#now()
    this.#readerMs += now - this.#deliveredAt
    this.#deliveredAt = now
    if (this.#readerMs < this.#windowMs) return
    this.#bytesBefore = this.#readerMs < 2 * this.#windowMs ? this.#bytes : 0
    this.#bytes = 0
    this.#readerMs %= this.#windowMs
  }

  /** Ends the download, so that another one can begin. */
  cut(): void {
    this.#cutDownload?.()
    this.release()
  }

  /** Safe to call twice. */
  release(): void {
    this.#release()
  }
}

/** What a download uses of the client that began it. */
export interface DownloadNeeds {
  /** Requests the rest of the bytes, in one attempt; undefined if the object does not exist any more. */
  reopen(range: ByteRange): Promise<S3Response | undefined>
  pause(tries: number, error: S3Error): Promise<boolean>
  /** The longest wait for the next bytes. */
  readonly waitMs: number
  /** The number of interruptions in a row, without a byte in between, after which the download fails. */
  readonly triesMax: number
  /** Undefined where this process itself is the reader. */
  readonly slot: Pick<DownloadSlot, 'begin' | 'requested' | 'delivered'> | undefined
  /** Called once, when the download has ended in any way. */
  release(): void
}

const operation = 'GetObject'

/**
 * The bytes of a range, from a response that has begun. After an interruption, the rest is requested again. Bytes are
 * fetched only when the reader wants them, so a slow reader slows down the server through the socket; timeouts count only
 * while the reader waits.
 */
export class Download {
  readonly #needs: DownloadNeeds
  readonly #last: number
  #at: number
  #response: S3Response | undefined
  #interruptions = 0
  #isCancelled = false
  /** The chunk that a client's reader has used up when it requests the next one. */
  #used: Uint8Array | undefined

  constructor(response: S3Response, range: ByteRange, needs: DownloadNeeds) {
    this.#response = response
    this.#at = range.first
    this.#last = range.last
    this.#needs = needs
  }

  stream(): ReadableStream<Uint8Array> {
    return new ReadableStream<Uint8Array>(
      {
        start: (controller) => this.#needs.slot?.begin(() => this.#cut(controller)),
        pull: (controller) => this.#pull(controller),
        cancel: () => this.#cancel(),
      },
      { highWaterMark: 0 },
    )
  }

  async #pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    this.#needs.slot?.requested()
    if (this.#used !== undefined) freeChunk(this.#used)
    try {
      const chunk = await this.#next()
      if (chunk === undefined) return
      controller.enqueue(chunk)
      if (this.#needs.slot !== undefined) this.#used = chunk
      this.#needs.slot?.delivered(chunk.length)
      if (this.#at <= this.#last) return
      controller.close()
      this.#needs.release()
      void this.#response?.endRead(this.#needs.waitMs)
    } catch (error) {
      this.#response?.abort()
      // `#cancel` has released the slot already.
      if (!this.#isCancelled) this.#needs.release()
      throw error
    }
  }

  #cancel(): void {
    this.#isCancelled = true
    this.#response?.abort()
    this.#needs.release()
  }

  /** The stream fails, because a reader would take a closed stream for the whole object. */
  #cut(controller: ReadableStreamDefaultController<Uint8Array>): void {
    this.#cancel()
    controller.error(new S3Error(operation, { code: 'cut', text: 'the reader is too slow while others wait' }))
  }

  async #next(): Promise<Uint8Array | undefined> {
    for (;;) {
      try {
        this.#response ??= await this.#reopen()
        const chunk = this.#isCancelled ? undefined : await this.#response.next(this.#needs.waitMs)
        if (this.#isCancelled) {
          this.#response.abort()
          return undefined
        }
        if (chunk === undefined) throw new S3Error(operation, { code: 'connection', text: 'ended early' })
        return this.#count(chunk)
      } catch (error) {
        if (this.#isCancelled) return undefined
        await this.#recover(error)
      }
    }
  }

  async #reopen(): Promise<S3Response> {
    const response = await this.#needs.reopen({ first: this.#at, last: this.#last })
    if (response === undefined) throw new S3Error(operation, { code: 'NoSuchKey', text: 'removed while it was read' })
    return response
  }

  async #recover(error: unknown): Promise<void> {
    this.#response?.abort()
    this.#response = undefined
    this.#interruptions += 1
    const isFinal = !(error instanceof S3Error) || !error.isTransient || this.#interruptions >= this.#needs.triesMax
    if (isFinal || !(await this.#needs.pause(this.#interruptions, error))) throw error
  }

  #count(chunk: Uint8Array): Uint8Array {
    this.#interruptions = 0
    this.#at += chunk.length
    if (this.#at <= this.#last + 1) return chunk
    throw new S3Error(operation, { code: 'malformed', text: 'the response has more bytes than requested' })
  }
}

/** The range of the bytes in a response, and the size of the whole object. */
export function parseExtent(
  { status, headers }: S3Response,
  operation: string,
): ByteRange & { readonly total: number } {
  if (status !== 206) {
    const total = parseSize(operation, headers.get('content-length'))
    return { first: 0, last: total - 1, total }
  }
  const [, first = '', last = '', total = ''] =
    /^bytes (\d+)-(\d+)\/(\d+)$/.exec(headers.get('content-range') ?? '') ?? []
  return { first: parseSize(operation, first), last: parseSize(operation, last), total: parseSize(operation, total) }
}
