import { LRUCache } from 'lru-cache'
import { type BucketSettings, TokenBucket } from './token-bucket.ts'

/** A network, as a keyed hash. */
export interface NetworkKey {
  readonly key: string
  /** A factor: the limits of the network are those of one client times this. */
  readonly share: number
}

/** The credential and the networks of one attempt, as keyed hashes. */
export interface AttemptKeys {
  readonly credential: string
  readonly networks: readonly NetworkKey[]
}

// An entry takes about 150 bytes, whatever was tried.
export const entriesMax = 20_000

/** The limits of a network with many clients. Without a pause, so that a few clients cannot lock out all others. */
export function limitsOfMany(one: BucketSettings, share: number): BucketSettings {
  if (share === 1) return one
  return { ...one, perMinute: one.perMinute * share, burst: one.burst * share, pauseMs: 0 }
}

/**
 * Counts failed attempts by credential and by network. A repeated credential drains only its own bucket. A new
 * credential drains the buckets of its networks too.
 */
export class FailureTally {
  readonly #settings: BucketSettings
  readonly #byCredential = new LRUCache<string, TokenBucket>({ max: entriesMax })
  /** A cache for each width of network, so that many narrow networks cannot displace the wide ones. */
  readonly #byNetwork: LRUCache<string, TokenBucket>[] = []

  constructor(settings: BucketSettings) {
    this.#settings = settings
  }

  /** How long an attempt must wait; 0 if it may be made. */
  waitMs({ credential, networks }: AttemptKeys, now: number): number {
    let waitMs = this.#byCredential.get(credential)?.waitMs(now) ?? 0
    for (const [width, { key }] of networks.entries()) {
      waitMs = Math.max(waitMs, this.#byNetwork[width]?.get(key)?.waitMs(now) ?? 0)
    }
    return waitMs
  }

  /** How many attempts of the network may still fail. */
  room(width: number, { key, share }: NetworkKey, now: number): number {
    return this.#byNetwork[width]?.get(key)?.room(now) ?? this.#settings.burst * share
  }

  /** Counts an attempt; true if the credential is new. */
  note({ credential, networks }: AttemptKeys, now: number): boolean {
    const isNew = !this.#byCredential.has(credential)
    drain(this.#byCredential, credential, this.#settings, now)
    if (!isNew) return false
    for (const [width, { key, share }] of networks.entries()) {
      this.#byNetwork[width] ??= new LRUCache({ max: entriesMax })
      drain(this.#byNetwork[width], key, limitsOfMany(this.#settings, share), now)
    }
    return true
  }
}

export function drain(
  buckets: LRUCache<string, TokenBucket>,
  key: string,
  settings: BucketSettings,
  now: number,
): void {
  let bucket = buckets.get(key)
  if (bucket === undefined) {
    bucket = new TokenBucket(settings, now)
    buckets.set(key, bucket)
  }
  bucket.drain(now)
}
