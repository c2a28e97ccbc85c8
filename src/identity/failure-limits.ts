import { LRUCache } from 'lru-cache'
import { SecretHasher } from '../lib/hashing.ts'
import { type AttemptGroup, PendingAttempts } from '../lib/pending-attempts.ts'
import { RegistryRefusal, Unavailable } from '../oci/errors.ts'
import type { Clock } from '../ports/clock.ts'
import { type AttemptKeys, drain, entriesMax, FailureTally, limitsOfMany } from './failure-tally.ts'
import { TokenBucket } from './token-bucket.ts'

export interface FailureSettings {
  readonly perMinute: number
  readonly burst: number
  readonly pauseMs: number
}

/** A network from which attempts come. */
export interface Network {
  readonly name: string
  /** A factor: the limits of the network are those of one client times this. */
  readonly share: number
}

/** An attempt to authenticate. Only keyed hashes of its members are kept. */
export interface Attempt {
  /** The networks of the client, the narrowest first. */
  readonly from: readonly Network[]
  /** Identifies the credential. */
  readonly credential: string
  /** The user, if a password is tried. */
  readonly target?: string | undefined
  /** Such a credential cannot be found by trying, so the limit of the whole process does not apply to it. */
  readonly isUnguessable?: boolean
}

/**
 * `good` and `bad` are results for the credential. `undecided`: the identity service was unavailable. `failed`: the
 * attempt ended with another error, which says nothing.
 */
export type AttemptResult = 'good' | 'bad' | 'undecided' | 'failed'

/** Limits attempts. */
export interface AttemptLimits {
  /**
   * Checks a credential with `work`, which returns undefined for a bad one. Refuses without a check after too many
   * failures.
   */
  run<T>(attempt: Attempt, work: () => Promise<T | undefined>): Promise<T | undefined>
}

/** Runs `work` between the beginning and the end of an attempt. */
export async function runAttempt<T>(
  end: (result: AttemptResult) => void,
  work: () => Promise<T | undefined>,
): Promise<T | undefined> {
  let result: AttemptResult = 'failed'
  try {
    const found = await work()
    result = found === undefined ? 'bad' : 'good'
    return found
  } catch (error) {
    if (error instanceof Unavailable) result = 'undecided'
    throw error
  } finally {
    end(result)
  }
}

/** An attempt as keyed hashes. */
interface Keys extends AttemptKeys {
  readonly target: string | undefined
  readonly isUnguessable: boolean
}

/** All networks together have ten times the limits of one, so that a few clients cannot lock a user out. */
const targetShare = 10

// A credential that was valid this recently is not limited by the failures of others.
const goodForMs = 3_600_000

/** The limit of all failures of this process, from all networks. */
const processLimits: FailureSettings = { perMinute: 6_000, burst: 200, pauseMs: 0 }

/**
 * Limits of attempts that failed because the identity service was unavailable. They are short, as the outage may be.
 */
const undecided = { perMinute: 60, pauseMs: 2_000, debtMax: 0 } as const

/** How long an attempt may wait for the results of others. */
const waitMaxMs = 10_000

/**
 * Limits attempts with bad credentials. A bad credential that is repeated, such as an old key of a robot, has a limit
 * of its own and counts as one failure of its network. Many different bad credentials are limited by network. A
 * credential that was valid recently is not limited.
 */
export class FailureLimits implements AttemptLimits {
  readonly #clock: Pick<Clock, 'now'>
  readonly #settings: FailureSettings
  readonly #hasher = new SecretHasher()
  readonly #failures: FailureTally
  readonly #undecided: FailureTally | undefined
  readonly #byTarget = new LRUCache<string, TokenBucket>({ max: entriesMax })
  readonly #goodUntil = new LRUCache<string, number>({ max: entriesMax })
  readonly #all: TokenBucket
  readonly #pending = new PendingAttempts()

  /** `limitsUndecided`: also limits attempts during which a remote identity service was unavailable. */
  constructor(settings: FailureSettings, clock: Pick<Clock, 'now'>, { limitsUndecided = false } = {}) {
    this.#settings = settings
    this.#clock = clock
    this.#failures = new FailureTally(settings)
    this.#undecided = limitsUndecided ? new FailureTally({ ...undecided, burst: settings.burst }) : undefined
    this.#all = new TokenBucket(processLimits, clock.now())
  }

  async run<T>(attempt: Attempt, work: () => Promise<T | undefined>): Promise<T | undefined> {
    return runAttempt(await this.begin(attempt), work)
  }

  /**
   * Begins an attempt, or refuses it. Of concurrent attempts, only as many are checked at once as may still fail. The
   * others wait. The returned function must be called once, with the result.
   */
  async begin(attempt: Attempt): Promise<(result: AttemptResult) => void> {
    const keys = this.#keysOf(attempt)
    const leave = await this.#enter(keys)
    return (result) => {
      const now = this.#clock.now()
      if (result === 'bad') this.#noteFailure(keys)
      else if (result === 'good') this.#goodUntil.set(keys.credential, now + goodForMs)
      else if (result === 'undecided') this.#undecided?.note(keys, now)
      leave()
    }
  }

  async #enter(keys: Keys): Promise<() => void> {
    for (;;) {
      this.#check(keys)
      if (this.#isGood(keys)) return () => undefined
      const groups = this.#groupsOf(keys)
      const full = this.#pending.findFull(groups, keys.credential)
      if (full === undefined) return this.#pending.add(groups, keys.credential)
      if (!(await this.#pending.waitForResult(full, waitMaxMs))) throw tooMany(1_000)
    }
  }

  #check(keys: Keys): void {
    if (this.#isGood(keys)) return
    const now = this.#clock.now()
    if ((this.#undecided?.waitMs(keys, now) ?? 0) > 0) throw new Unavailable('identity-service')
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

  #groupsOf({ networks, target }: Keys): readonly AttemptGroup[] {
    const now = this.#clock.now()
    const groups = networks.map((network, width) => ({
      key: network.key,
      failuresLeft: this.#failures.room(width, network, now),
    }))
    if (target === undefined) return groups
    const failuresLeft = this.#byTarget.get(target)?.room(now) ?? this.#settings.burst * targetShare
    return [...groups, { key: target, failuresLeft }]
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

  /** A keyed hash has a fixed length, and is of no use to a reader of a memory dump. */
  #keyOf(kind: string, text: string): string {
    return this.#hasher.hash(`${kind}:${text}`)
  }
}

function tooMany(waitMs: number): RegistryRefusal {
  return new RegistryRefusal('too-many-failures', { retryAfterSeconds: Math.ceil(waitMs / 1000) })
}
