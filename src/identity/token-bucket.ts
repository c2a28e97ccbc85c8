export interface BucketSettings {
  /** How much time gives back. */
  readonly perMinute: number
  /** What a full bucket holds. */
  readonly burst: number
  /** The shortest time that an empty bucket refuses. */
  readonly pauseMs: number
  /** How far below empty the level can fall. */
  readonly debtMax?: number
}

/** A token bucket: failures drain it, and time fills it. While it is empty, attempts must wait. */
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

  /** How many attempts may still fail. */
  room(now: number): number {
    return Math.floor(this.#levelAt(now))
  }

  /** An empty bucket refuses for the pause, or until its debt is paid back if that takes longer. */
  drain(now: number): void {
    this.#level = Math.max(-this.#debtMax(), this.#levelAt(now) - 1)
    this.#filledAt = now
    if (this.#level < 1) this.#refusedUntil = now + Math.max(this.#settings.pauseMs, this.#fillingMs(this.#level))
  }

  waitMs(now: number): number {
    const waitMs = this.#refusedUntil - now
    // More than the longest wait there is: the clock was set back.
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
