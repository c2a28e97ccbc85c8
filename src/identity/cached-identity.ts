import { LRUCache } from 'lru-cache'
import { SecretHasher } from '../lib/hashing.ts'
import { Unavailable } from '../oci/errors.ts'
import type { Clock } from '../ports/clock.ts'
import type { Credential, Identity, Origin, Principal } from '../ports/identity.ts'

/** How long results are cached, in milliseconds. 0: not at all. */
export interface CachePolicy {
  /** How long a valid credential is not checked again. A revoked credential works at most this much longer. */
  readonly goodMs: number
  /** After this time, the next use of a valid credential starts a check in the background. */
  readonly refreshAfterMs: number
  readonly badMs: number
  /** While the identity service is unavailable, a credential is accepted this long after its last successful check. */
  readonly outageMs: number
  /** After several failed checks of a cached credential, the next check is delayed by this time. */
  readonly retryMs?: number
  /** The largest number of valid credentials in the cache. */
  readonly goodEntriesMax?: number
}

export interface CachedPrincipal {
  readonly principal: Principal
  readonly refreshAt: number
  readonly goodUntil: number
  readonly usableUntil: number
  /** Consecutive checks that failed because the identity service was unavailable. */
  readonly failures: number
  readonly retryAt: number
}

const failuresMax = 5

const defaultGoodEntriesMax = 10_000

// A cache of its own, so that many wrong credentials cannot displace the valid ones.
const badEntriesMax = 2_000

/**
 * Caches the results of checks, because one push makes many requests with one credential, and many clients may use it
 * at once. The cache key is a hash of the credential, so the cache contains no secrets, and the timing of a look-up
 * reveals nothing. An unavailable identity service is not a result, and is not cached.
 */
export class CachedIdentity implements Identity {
  readonly #inner: Identity
  readonly #clock: Pick<Clock, 'now'>
  readonly #policy: CachePolicy
  readonly #hasher = new SecretHasher()
  readonly #good: LRUCache<string, CachedPrincipal>
  readonly #badUntil = new LRUCache<string, number>({ max: badEntriesMax })
  /** At most one check of a credential runs at a time. Concurrent requests share it. */
  readonly #running = new Map<string, Promise<Principal | undefined>>()
  /** `clear` starts a new generation. The results of checks that began in an earlier one are not cached. */
  #generation = 0

  constructor(inner: Identity, clock: Pick<Clock, 'now'>, policy: CachePolicy) {
    this.#inner = inner
    this.#clock = clock
    this.#policy = policy
    this.#good = new LRUCache<string, CachedPrincipal>({ max: policy.goodEntriesMax ?? defaultGoodEntriesMax })
  }

  findCached(credential: Credential): Principal | undefined {
    return this.find(credential)?.principal
  }

  /** As `findCached`, with the times until which the principal may be used and need not be checked again. */
  find(credential: Credential): CachedPrincipal | undefined {
    const key = this.#keyOf(credential)
    const cached = this.#good.get(key)
    if (cached === undefined) return undefined
    const now = this.#clock.now()
    if (now >= cached.goodUntil) return undefined
    if (now >= cached.refreshAt && now >= cached.retryAt) {
      void this.#check(key, credential, { name: key }).catch(() => undefined)
    }
    return cached
  }

  async authenticate(credential: Credential, origin?: Origin): Promise<Principal | undefined> {
    const principal = this.findCached(credential)
    if (principal !== undefined) return principal
    const key = this.#keyOf(credential)
    if ((this.#badUntil.get(key) ?? 0) > this.#clock.now()) return undefined
    const expired = this.#good.get(key)
    if (expired !== undefined && this.#clock.now() < expired.retryAt) return this.#unconfirmed(expired)
    try {
      // A credential that was valid before is an origin of its own: the failures of its network do not affect it.
      return await this.#check(key, credential, expired === undefined ? origin : { ...origin, name: key })
    } catch (error) {
      const stillCached = this.#good.get(key)
      if (!(error instanceof Unavailable) || stillCached === undefined) throw error
      return this.#unconfirmed(stillCached, error)
    }
  }

  /** The principal of a credential that was valid, while the identity service is unavailable. */
  #unconfirmed({ principal, usableUntil }: CachedPrincipal, cause?: Unavailable): Principal {
    if (this.#clock.now() >= usableUntil) throw cause ?? new Unavailable('identity-service')
    return { ...principal, isUnconfirmed: true }
  }

  clear(): void {
    this.#generation += 1
    this.#good.clear()
    this.#badUntil.clear()
    this.#running.clear()
  }

  #keyOf(credential: Credential): string {
    const { kind, secret } = credential
    // A user name has no colon, so two different logins never have the same text.
    const text = kind === 'login' ? `${kind}:${credential.userName}:${secret}` : `${kind}:${secret}`
    return this.#hasher.hash(text)
  }

  #check(key: string, credential: Credential, origin: Origin | undefined): Promise<Principal | undefined> {
    const running = this.#running.get(key)
    if (running !== undefined) return running
    const generation = this.#generation
    const check = this.#inner
      .authenticate(credential, origin)
      .then(
        (principal) => {
          if (generation === this.#generation) this.#store(key, principal)
          return principal
        },
        (error: unknown) => {
          if (generation === this.#generation) this.#delayRetry(key)
          throw error
        },
      )
      .finally(() => {
        if (this.#running.get(key) === check) this.#running.delete(key)
      })
    this.#running.set(key, check)
    return check
  }

  #delayRetry(key: string): void {
    const cached = this.#good.get(key)
    const { retryMs = 0 } = this.#policy
    if (cached === undefined) return
    const failures = cached.failures + 1
    const retryAt = failures < failuresMax ? cached.retryAt : this.#clock.now() + retryMs
    this.#good.set(key, { ...cached, failures, retryAt })
  }

  #store(key: string, principal: Principal | undefined): void {
    const { goodMs, refreshAfterMs, badMs, outageMs } = this.#policy
    const now = this.#clock.now()
    if (principal === undefined) {
      this.#good.delete(key)
      if (badMs > 0) this.#badUntil.set(key, now + badMs)
      return
    }
    this.#badUntil.delete(key)
    const end = principal.expiresAt ?? Infinity
    // Up to a tenth less, so that credentials that were cached together are not checked together again.
    const share = 1 - (key.charCodeAt(0) % 16) / 160
    this.#good.set(key, {
      principal,
      refreshAt: now + refreshAfterMs * share,
      goodUntil: Math.min(now + goodMs * share, end),
      usableUntil: Math.min(now + outageMs, end),
      failures: 0,
      retryAt: now,
    })
  }
}
