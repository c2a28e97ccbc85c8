import { NoSlot } from '../../lib/slots.ts'

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

interface Waiter {
  /** Ends the wait. */
  take(place: DownloadPlace): void
}

/**
 * The places of downloads, which last as long as their readers like: a few hundred that hardly read would be enough to keep
 * everybody else out. So while somebody waits, the reader that took least is cut, if that was too little. Its client can go
 * on with `Range`. As long as there are places, nobody is cut for being slow.
 */
export class DownloadPlaces {
  readonly #settings: PlacesSettings
  readonly #now: () => number
  readonly #windowMs: number
  readonly #taken = new Set<DownloadPlace>()
  readonly #waiting = new Set<Waiter>()
  #timer: Timer | undefined

  constructor(settings: PlacesSettings, now: () => number = () => performance.now()) {
    this.#settings = settings
    this.#now = now
    this.#windowMs = settings.pace?.windowMs ?? Number.POSITIVE_INFINITY
  }

  /** Rejects with `NoSlot` where too many wait already, or the wait was too long. */
  async take(): Promise<DownloadPlace> {
    if (this.#taken.size < this.#settings.placesMax) return this.#newPlace()
    if (this.#waiting.size >= this.#settings.queueMax) throw new NoSlot()
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(waiter)
        reject(new NoSlot())
      }, this.#settings.waitMaxMs)
      const waiter: Waiter = {
        take: (place) => {
          clearTimeout(timer)
          this.#waiting.delete(waiter)
          resolve(place)
        },
      }
      this.#waiting.add(waiter)
      this.#makeRoom()
    })
  }

  #newPlace(): DownloadPlace {
    const place: DownloadPlace = new DownloadPlace(this.#windowMs, this.#now, () => {
      this.#taken.delete(place)
      // Handed on at once: nobody who comes just now can slip in between.
      const [next] = this.#waiting
      next?.take(this.#newPlace())
    })
    this.#taken.add(place)
    return place
  }

  /** Looks again and again, as long as anybody waits. */
  #makeRoom(): void {
    const { pace } = this.#settings
    if (pace === undefined) return
    const bytesMin = (pace.bytesPerSecondMin * scarceFactor * pace.windowMs) / 1000
    let isCut = true
    while (isCut && this.#waiting.size > 0) isCut = this.#cutSlowest(bytesMin)
    if (this.#waiting.size > 0) {
      this.#timer ??= setInterval(() => this.#makeRoom(), pace.windowMs / looksPerWindow)
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
  #leave: (() => void) | undefined
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
    const leave = this.#leave
    this.#leave = undefined
    leave?.()
  }
}
