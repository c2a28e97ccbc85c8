import { LRUCache } from 'lru-cache'
import { RegistryRefusal } from '../oci/errors.ts'
import type { Clock } from '../ports/clock.ts'

export interface FailureSettings {
  readonly perMinute: number
  readonly burst: number
  readonly pauseMs: number
}

/** Who tries what. Nothing of it is kept as it is given. */
export interface Attempt {
  /** The network that the request comes from; undefined where that speaks for many, and says nothing of whom. */
  readonly from: string | undefined
  /** What tells the credential from others. */
  readonly credential: string
  /** Whose credential would be guessed, where that is known: a user, and his password. */
  readonly target?: string
}

// An entry is some 150 bytes, whatever was tried. What drives one out early is held back by `everybody`.
const entriesMax = 20_000

/** Guesses at one target from however many networks: ten times as many, or anybody could lock out whom he can name. */
const crowd = 10

// A credential that was good in this time is no guess, whoever else is at its address.
const goodForMs = 3_600_000

/** All failures together, from however many networks: no pause, or a few of them could lock out everybody else. */
const everybody: FailureSettings = { perMinute: 6_000, burst: 200, pauseMs: 0 }

/**
 * Slows down who tries credentials. One bad credential that is used again and again (a robot with an old key) is held back
 * by itself and costs its address nothing; who tries many is held back by address. Neither holds back who is at work beside
 * them: a credential that was good lately is looked at all the same.
 */
export class FailureLimits {
  readonly #settings: FailureSettings
  readonly #clock: Pick<Clock, 'now'>
  readonly #hmac = new Bun.CryptoHasher('sha256', crypto.getRandomValues(new Uint8Array(32)))
  readonly #byAddress = new LRUCache<string, Bucket>({ max: entriesMax })
  readonly #byCredential = new LRUCache<string, Bucket>({ max: entriesMax })
  readonly #byTarget = new LRUCache<string, Bucket>({ max: entriesMax })
  readonly #goodUntil = new LRUCache<string, number>({ max: entriesMax })
  readonly #all: Bucket
  /** Guesses at passwords that are being looked at, by network: each may turn out to be one failure more. */
  readonly #underWay = new Map<string, number>()

  constructor(settings: FailureSettings, clock: Pick<Clock, 'now'>) {
    this.#settings = settings
    this.#clock = clock
    this.#all = new Bucket(everybody, clock.now())
  }

  /** Refuses who has failed too often, without looking at what he brings. */
  check({ from, credential, target }: Attempt): void {
    const now = this.#clock.now()
    const key = this.#keyOf(credential)
    if ((this.#goodUntil.get(key) ?? 0) > now) return
    const waitMs = Math.max(
      this.#all.waitMs(now),
      this.#byCredential.get(key)?.waitMs(now) ?? 0,
      this.#waitMs(this.#byAddress, from, now),
      this.#waitMs(this.#byTarget, target, now),
    )
    if (waitMs > 0) throw new RegistryRefusal('too-many-failures', { retryAfterSeconds: Math.ceil(waitMs / 1000) })
  }

  /**
   * As `check`, for guesses that are slow to look at: of those that come together no more are let in than may fail. To be
   * followed by `leave`.
   */
  enter(attempt: Attempt): void {
    this.check(attempt)
    if (attempt.from === undefined) return
    const key = this.#keyOf(attempt.from)
    const underWay = this.#underWay.get(key) ?? 0
    const room = this.#byAddress.get(key)?.room(this.#clock.now()) ?? this.#settings.burst
    if (underWay >= room) throw new RegistryRefusal('too-many-failures', { retryAfterSeconds: 1 })
    this.#underWay.set(key, underWay + 1)
  }

  leave({ from }: Attempt): void {
    if (from === undefined) return
    const key = this.#keyOf(from)
    const left = (this.#underWay.get(key) ?? 1) - 1
    if (left === 0) this.#underWay.delete(key)
    else this.#underWay.set(key, left)
  }

  noteSuccess({ credential }: Attempt): void {
    this.#goodUntil.set(this.#keyOf(credential), this.#clock.now() + goodForMs)
  }

  noteFailure({ from, credential, target }: Attempt): void {
    const now = this.#clock.now()
    const key = this.#keyOf(credential)
    this.#goodUntil.delete(key)
    const isNew = !this.#byCredential.has(key)
    this.#drain(this.#byCredential, credential, this.#settings)
    if (!isNew) return
    if (from !== undefined) this.#drain(this.#byAddress, from, this.#settings)
    if (target !== undefined) {
      const { perMinute, burst } = this.#settings
      this.#drain(this.#byTarget, target, { perMinute: perMinute * crowd, burst: burst * crowd, pauseMs: 0 })
    }
    this.#all.drain(now)
  }

  #waitMs(buckets: LRUCache<string, Bucket>, name: string | undefined, now: number): number {
    return name === undefined ? 0 : (buckets.get(this.#keyOf(name))?.waitMs(now) ?? 0)
  }

  #drain(buckets: LRUCache<string, Bucket>, name: string, settings: FailureSettings): void {
    const now = this.#clock.now()
    const key = this.#keyOf(name)
    const known = buckets.get(key)
    const bucket = known ?? new Bucket(settings, now)
    if (known === undefined) buckets.set(key, bucket)
    bucket.drain(now)
  }

  /** Of one length, however long what strangers send, and of no use to who finds it in a memory image. */
  #keyOf(text: string): string {
    return this.#hmac.copy().update(text).digest('base64')
  }
}

/** Failures drain it and time fills it; who has emptied it waits. */
class Bucket {
  readonly #settings: FailureSettings
  #level: number
  #filledAt: number
  #refusedUntil = 0

  constructor(settings: FailureSettings, now: number) {
    this.#settings = settings
    this.#level = settings.burst
    this.#filledAt = now
  }

  /** How many may still fail. */
  room(now: number): number {
    return Math.floor(this.#levelAt(now))
  }

  /** Until there is something in it again: the pause, and longer where so many failed together that they left a debt. */
  drain(now: number): void {
    const { burst, pauseMs } = this.#settings
    this.#level = Math.max(-burst, this.#levelAt(now) - 1)
    this.#filledAt = now
    if (this.#level < 1) this.#refusedUntil = now + Math.max(pauseMs, this.#fillingMs(this.#level))
  }

  waitMs(now: number): number {
    const waitMs = this.#refusedUntil - now
    // More than anybody is ever told to wait: somebody has set the clock back.
    const longestMs = Math.max(this.#settings.pauseMs, this.#fillingMs(-this.#settings.burst))
    return waitMs > longestMs ? 0 : Math.max(0, waitMs)
  }

  #levelAt(now: number): number {
    const { perMinute, burst } = this.#settings
    return Math.min(burst, this.#level + (Math.max(0, now - this.#filledAt) / 60_000) * perMinute)
  }

  #fillingMs(level: number): number {
    return Math.ceil(((1 - level) / this.#settings.perMinute) * 60_000)
  }
}
