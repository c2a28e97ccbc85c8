import { Slots } from '../../lib/slots.ts'

/** What readers are held to elsewhere: so many bytes a second, looked at over so long. */
export interface ReaderPace {
  readonly bytesPerSecondMin: number
  readonly windowMs: number
}

export interface PlacesSettings {
  readonly placesMax: number
  readonly queueMax: number
  readonly waitMaxMs: number
  /** Without it, a place is its reader's for as long as it likes. */
  readonly pace: ReaderPace | undefined
}

/** Who has what others wait for has to take so many times as much as who takes nothing but time. */
const scarceFactor = 16

const looksPerWindow = 6

/**
 * The places of downloads, which last as long as their readers like: a few hundred that hardly read would be enough to keep
 * everybody else out. So while somebody waits, the reader that took least is cut, if that was too little. Its client can go
 * on with `Range`. As long as there are places, nobody is cut for being slow.
 */
export class DownloadPlaces {
  readonly #pace: ReaderPace | undefined
  readonly #slots: Slots
  readonly #now: () => number
  readonly #taken = new Set<DownloadPlace>()
  #timer: Timer | undefined

  constructor(settings: PlacesSettings, now: () => number = () => performance.now()) {
    this.#pace = settings.pace
    this.#slots = new Slots(settings.placesMax, settings.queueMax, settings.waitMaxMs)
    this.#now = now
  }

  /** Rejects with `NoSlot` where too many wait already, or the wait was too long. */
  async take(): Promise<DownloadPlace> {
    const taking = this.#slots.take()
    this.#makeRoom()
    const release = await taking
    const windowMs = this.#pace?.windowMs ?? Number.POSITIVE_INFINITY
    const place: DownloadPlace = new DownloadPlace(windowMs, this.#now, () => {
      this.#taken.delete(place)
      release()
    })
    this.#taken.add(place)
    return place
  }

  /** Looks again and again, as long as anybody waits. */
  #makeRoom(): void {
    if (this.#pace === undefined) return
    const { bytesPerSecondMin, windowMs } = this.#pace
    const bytesMin = (bytesPerSecondMin * scarceFactor * windowMs) / 1000
    let isCut = true
    while (isCut && this.#slots.waiting > 0) isCut = this.#cutSlowest(bytesMin)
    if (this.#slots.waiting > 0) {
      this.#timer ??= setInterval(() => this.#makeRoom(), windowMs / looksPerWindow)
    } else {
      clearInterval(this.#timer)
      this.#timer = undefined
    }
  }

  #cutSlowest(bytesMin: number): boolean {
    let slowest: DownloadPlace | undefined
    let least = bytesMin
    for (const place of this.#taken) {
      const bytes = place.takenLately()
      if (bytes === undefined || bytes >= least) continue
      slowest = place
      least = bytes
    }
    slowest?.cut()
    return slowest !== undefined
  }
}

/** The right to one download, and what its reader makes of it. Only the time in which we wait for the reader counts. */
export class DownloadPlace {
  readonly #windowMs: number
  readonly #now: () => number
  readonly #leave: () => void
  #end: (() => void) | undefined
  /** In the window that runs, and in the one before it. */
  #bytes = 0
  #bytesBefore: number | undefined
  #readerMs = 0
  #waitsSince: number | undefined

  constructor(windowMs: number, now: () => number, leave: () => void) {
    this.#windowMs = windowMs
    this.#now = now
    this.#leave = leave
  }

  /** The download has begun; `end` stops it in its middle, and leaves. Before that, nobody is cut. */
  begin(end: () => void): void {
    this.#end = end
  }

  /** The reader has so many bytes, and its time runs. */
  gave(bytes: number): void {
    this.#bytes += bytes
    this.#waitsSince = this.#now()
  }

  /** The reader wants more: now the store's time runs. */
  asked(): void {
    this.#count()
    this.#waitsSince = undefined
  }

  /** In the last whole window, or in the one that runs if that is more already; undefined before there was a whole one. */
  takenLately(): number | undefined {
    this.#count()
    if (this.#bytesBefore === undefined || this.#end === undefined) return undefined
    return Math.max(this.#bytesBefore, this.#bytes)
  }

  #count(): void {
    if (this.#waitsSince === undefined) return
    const now = this.#now()
    this.#readerMs += now - this.#waitsSince
    this.#waitsSince = now
    if (this.#readerMs < this.#windowMs) return
    this.#bytesBefore = this.#readerMs < 2 * this.#windowMs ? this.#bytes : 0
    this.#bytes = 0
    this.#readerMs %= this.#windowMs
  }

  /** Stops the download for somebody else's sake. */
  cut(): void {
    this.#end?.()
    this.leave()
  }

  /** Gives the place back. Safe to call twice. */
  leave(): void {
    this.#leave()
  }
}
