export interface BucketSettings {
  /** How fast the bucket fills. */
  readonly perMinute: number
  /** The level of a full bucket. */
  readonly burst: number
  /** The shortest time for which an empty bucket refuses. */
  readonly pauseMs: number
  /** How far the level can fall below 0. */
  readonly debtMax?: number
}

/** A token bucket. Failures drain it, and it fills with time. While it is empty, attempts must wait. */
export class TokenBucket {
  readonly #settings: BucketSettings
  #level: number
  #filledAt: number
  #refusedUntil = 0

  constructor(settings: BucketSettings, now: number) {
    this.#settings = settings
    this.#level = settings.burst
    this.#filledAt = now
  }

  /** How many attempts may fail before the bucket is empty. */
  room(now: number): number {
    return Math.floor(this.#levelAt(now))
  }

  /** An empty bucket refuses for the pause, or until its level is 1 again if that takes longer. */
  drain(now: number): void {
    this.#level = Math.max(-this.#debtMax(), this.#levelAt(now) - 1)
    this.#filledAt = now
    if (this.#level < 1) this.#refusedUntil = now + Math.max(this.#settings.pauseMs, this.#fillingMs(this.#level))
  }

  waitMs(now: number): number {
    const waitMs = this.#refusedUntil - now
    // A wait that is longer than possible means that the clock was set back.
    const longestMs = Math.max(this.#settings.pauseMs, this.#fillingMs(-this.#debtMax()))
    return waitMs > longestMs ? 0 : Math.max(0, waitMs)
  }

  #debtMax(): number {
    return this.#settings.debtMax ?? this.#settings.burst
  }

  #levelAt(now: number): number {
    const { perMinute, burst } = this.#settings
    return Math.min(burst, this.#level + (Math.max(0, now - this.#filledAt) / 60_000) * perMinute)
  }

  #fillingMs(level: number): number {
    return Math.ceil(((1 - level) / this.#settings.perMinute) * 60_000)
  }
}
