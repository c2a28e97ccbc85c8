import { LRUCache } from 'lru-cache'
import { PendingAttempts, type Place } from '../lib/pending-attempts.ts'
import { RegistryRefusal, Unavailable } from '../oci/errors.ts'
import type { Clock } from '../ports/clock.ts'
import { type AttemptKeys, drain, entriesMax, FailureTally, limitsOfMany } from './failure-tally.ts'
import { TokenBucket } from './token-bucket.ts'

export interface FailureSettings {
  readonly perMinute: number
  readonly burst: number
  readonly pauseMs: number
}

/** A network that attempts come from. */
export interface Network {
  readonly name: string
  /** How many times the limits of one client this network has. */
  readonly share: number
}

/** Who tries what. Nothing of it is kept as it is given. */
export interface Attempt {
  /** The networks of the client, the narrowest first. */
  readonly from: readonly Network[]
  /** What tells the credential from others. */
  readonly credential: string
  /** The user whose password is tried. */
  readonly target?: string | undefined
  /** Nobody can find such a credential by trying, so the limit of the whole process does not apply to it. */
  readonly isUnguessable?: boolean
}

/** `credential`, `networks` and `target` are keyed hashes. */
interface Keys extends AttemptKeys {
  readonly target: string | undefined
  readonly isUnguessable: boolean
}

/** One user's password may be tried ten times as often from all networks together, or a few could lock the user out. */
const targetShare = 10

// A credential that was good in this time is no guess, whoever else is at its address.
const goodForMs = 3_600_000

/** All guesses together, from however many networks. */
const everybody: FailureSettings = { perMinute: 6_000, burst: 200, pauseMs: 0 }

/** Attempts that the identity service could not decide. They end with its trouble, so nobody waits for long. */
const undecided = { perMinute: 60, pauseMs: 2_000, debtMax: 0 } as const

/** How long an attempt may wait for others to be decided. */
const waitMaxMs = 10_000

/**
 * Limits attempts with bad credentials. A bad credential that is used again and again (a robot with an old key) is limited
 * by itself and costs its network one failure. Many bad credentials are limited by network. A credential that was good
 * lately is not limited by what its neighbours do.
 */
export class FailureLimits {
  readonly #clock: Pick<Clock, 'now'>
  readonly #settings: FailureSettings
  readonly #hmac = new Bun.CryptoHasher('sha256', crypto.getRandomValues(new Uint8Array(32)))
  readonly #failures: FailureTally
  readonly #undecided: FailureTally | undefined
  readonly #byTarget = new LRUCache<string, TokenBucket>({ max: entriesMax })
  readonly #goodUntil = new LRUCache<string, number>({ max: entriesMax })
  readonly #all: TokenBucket
  readonly #underWay = new PendingAttempts()

  /** `limitsUndecided`: the credentials are judged by another service, whose trouble one network must not provoke at will. */
  constructor(settings: FailureSettings, clock: Pick<Clock, 'now'>, { limitsUndecided = false } = {}) {
    this.#settings = settings
    this.#clock = clock
    this.#failures = new FailureTally(settings)
    this.#undecided = limitsUndecided ? new FailureTally({ ...undecided, burst: settings.burst }) : undefined
    this.#all = new TokenBucket(everybody, clock.now())
  }

  /**
   * Judges a credential by `work`, which gives undefined if it is bad. Refuses, without beginning, when too many attempts
   * have failed. Of attempts that come together, as many are judged at a time as may still fail; the others wait.
   */
  async run<T>(attempt: Attempt, work: () => Promise<T | undefined>): Promise<T | undefined> {
    const keys = this.#keysOf(attempt)
    const leave = await this.#enter(keys)
    try {
      const found = await work()
      if (found === undefined) this.#noteFailure(keys)
      else this.#goodUntil.set(keys.credential, this.#clock.now() + goodForMs)
      return found
    } catch (error) {
      if (error instanceof Unavailable) this.#undecided?.note(keys, this.#clock.now())
      throw error
    } finally {
      leave()
    }
  }

  async #enter(keys: Keys): Promise<() => void> {
    for (;;) {
      this.#check(keys)
      if (this.#isGood(keys)) return () => undefined
      const places = this.#placesOf(keys)
      const full = this.#underWay.findFull(places, keys.credential)
      if (full === undefined) return this.#underWay.enter(places, keys.credential)
      if (!(await this.#underWay.waitForDecision(full, waitMaxMs))) throw tooMany(1_000)
    }
  }

  #check(keys: Keys): void {
    if (this.#isGood(keys)) return
    const now = this.#clock.now()
    if ((this.#undecided?.waitMs(keys, now) ?? 0) > 0) throw new Unavailable('the identity service')
    const { target, isUnguessable } = keys
    const waitMs = Math.max(
      isUnguessable ? 0 : this.#all.waitMs(now),
      this.#failures.waitMs(keys, now),
      target === undefined ? 0 : (this.#byTarget.get(target)?.waitMs(now) ?? 0),
    )
    if (waitMs > 0) throw tooMany(waitMs)
  }

  #isGood({ credential }: Keys): boolean {
    return (this.#goodUntil.get(credential) ?? 0) > this.#clock.now()
  }

  #placesOf({ networks, target }: Keys): readonly Place[] {
    const now = this.#clock.now()
    const places = networks.map((network, width) => ({
      key: network.key,
      room: this.#failures.room(width, network, now),
    }))
    if (target === undefined) return places
    const room = this.#byTarget.get(target)?.room(now) ?? this.#settings.burst * targetShare
    return [...places, { key: target, room }]
  }

  #noteFailure(keys: Keys): void {
    const now = this.#clock.now()
    this.#goodUntil.delete(keys.credential)
    if (!this.#failures.note(keys, now)) return
    if (keys.target !== undefined) drain(this.#byTarget, keys.target, limitsOfMany(this.#settings, targetShare), now)
    if (!keys.isUnguessable) this.#all.drain(now)
  }

  #keysOf({ from, credential, target, isUnguessable = false }: Attempt): Keys {
    return {
      credential: this.#keyOf('credential', credential),
      networks: from.map(({ name, share }) => ({ key: this.#keyOf('network', name), share })),
      target: target === undefined ? undefined : this.#keyOf('target', target),
      isUnguessable,
    }
  }

  /** Of one length, however long the text is, and of no use to a reader of a memory image. */
  #keyOf(kind: string, text: string): string {
    return this.#hmac.copy().update(`${kind}:${text}`).digest('base64')
  }
}

function tooMany(waitMs: number): RegistryRefusal {
  return new RegistryRefusal('too-many-failures', { retryAfterSeconds: Math.ceil(waitMs / 1000) })
}
