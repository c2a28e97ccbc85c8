import { LRUCache } from 'lru-cache'
import { Unavailable } from '../oci/errors.ts'
import type { Clock } from '../ports/clock.ts'
import type { CachingIdentity, Credential, Identity, Origin, Principal } from '../ports/identity.ts'

/** For how long what is remembered, in milliseconds; 0: not at all. */
export interface CachePolicy {
  /** A good credential is not asked about again for this long: how long a revoked one may still work. */
  readonly goodMs: number
  /** After this long, who uses it makes us ask in the background, and need not wait for the answer. */
  readonly refreshAfterMs: number
  readonly badMs: number
  /** A credential that was good this long ago counts while the identity service does not answer. */
  readonly outageMs: number
  /** When several questions about a known credential in a row found no answer, the next is asked this much later. */
  readonly retryMs?: number
}

interface Known {
  readonly principal: Principal
  readonly refreshAt: number
  readonly goodUntil: number
  readonly usableUntil: number
  /** Questions in a row that found no answer. */
  readonly misses: number
  readonly retryAt: number
}

const missesMax = 5

const goodEntriesMax = 10_000

// Apart from the good ones: random keys must not drive those out.
const badEntriesMax = 2_000

/**
 * Remembers who stood behind a credential: a push makes many requests with one, and a fleet makes them all at once. The
 * memory is keyed by an HMAC with a key of this process, so no secret lies in it, and finding an entry tells nothing by
 * its timing. Only a yes or a no is remembered, never that nobody could tell.
 */
export class CachedIdentity implements CachingIdentity {
  readonly #inner: Identity
  readonly #clock: Pick<Clock, 'now'>
  readonly #policy: CachePolicy
  readonly #hmac = new Bun.CryptoHasher('sha256', crypto.getRandomValues(new Uint8Array(32)))
  readonly #good = new LRUCache<string, Known>({ max: goodEntriesMax })
  readonly #badUntil = new LRUCache<string, number>({ max: badEntriesMax })
  /** One question a credential, however many ask. */
  readonly #running = new Map<string, Promise<Principal | undefined>>()
  /** Answers to questions of an earlier era are not kept. */
  #era = 0

  constructor(inner: Identity, clock: Pick<Clock, 'now'>, policy: CachePolicy) {
    this.#inner = inner
    this.#clock = clock
    this.#policy = policy
  }

  findCached(credential: Credential): Principal | undefined {
    const key = this.#keyOf(credential)
    const known = this.#good.get(key)
    if (known === undefined) return undefined
    const now = this.#clock.now()
    if (now >= known.goodUntil) return undefined
    if (now >= known.refreshAt && now >= known.retryAt)
      void this.#ask(key, credential, { name: key }).catch(() => undefined)
    return known.principal
  }

  async authenticate(credential: Credential, origin?: Origin): Promise<Principal | undefined> {
    const remembered = this.findCached(credential)
    if (remembered !== undefined) return remembered
    const key = this.#keyOf(credential)
    if ((this.#badUntil.get(key) ?? 0) > this.#clock.now()) return undefined
    const known = this.#good.get(key)
    if (known !== undefined && this.#clock.now() < known.retryAt) return this.#bridge(known)
    try {
      // What befalls a credential that was good is its own: it does not share the trouble of its network.
      return await this.#ask(key, credential, known === undefined ? origin : { ...origin, name: key })
    } catch (error) {
      const stillKnown = this.#good.get(key)
      if (!(error instanceof Unavailable) || stillKnown === undefined) throw error
      return this.#bridge(stillKnown, error)
    }
  }

  /** What a known credential is good for while nobody can tell whether it still is. */
  #bridge({ principal, usableUntil }: Known, cause?: Unavailable): Principal {
    if (this.#clock.now() >= usableUntil) throw cause ?? new Unavailable('the identity service')
    return { ...principal, isUnconfirmed: true }
  }

  isUnguessable(_credential: Credential): boolean {
    return false
  }

  clear(): void {
    this.#era += 1
    this.#good.clear()
    this.#badUntil.clear()
    this.#running.clear()
  }

  #keyOf(credential: Credential): string {
    const { kind, secret } = credential
    // No name holds a colon, so two different logins never have the same text.
    const text = kind === 'login' ? `${kind}:${credential.userName}:${secret}` : `${kind}:${secret}`
    return this.#hmac.copy().update(text).digest('base64')
  }

  #ask(key: string, credential: Credential, origin: Origin | undefined): Promise<Principal | undefined> {
    const running = this.#running.get(key)
    if (running !== undefined) return running
    const era = this.#era
    const asked = this.#inner
      .authenticate(credential, origin)
      .then(
        (principal) => {
          if (era === this.#era) this.#remember(key, principal)
          return principal
        },
        (error: unknown) => {
          if (era === this.#era) this.#putOff(key)
          throw error
        },
      )
      .finally(() => {
        if (this.#running.get(key) === asked) this.#running.delete(key)
      })
    this.#running.set(key, asked)
    return asked
  }

  #putOff(key: string): void {
    const known = this.#good.get(key)
    const { retryMs = 0 } = this.#policy
    if (known === undefined) return
    const misses = known.misses + 1
    const retryAt = misses < missesMax ? known.retryAt : this.#clock.now() + retryMs
    this.#good.set(key, { ...known, misses, retryAt })
  }

  #remember(key: string, principal: Principal | undefined): void {
    const { goodMs, refreshAfterMs, badMs, outageMs } = this.#policy
    const now = this.#clock.now()
    if (principal === undefined) {
      this.#good.delete(key)
      if (badMs > 0) this.#badUntil.set(key, now + badMs)
      return
    }
    this.#badUntil.delete(key)
    const end = principal.expiresAt ?? Infinity
    // Up to a tenth less, so that credentials first seen together are not asked about together ever after.
    const share = 1 - (key.charCodeAt(0) % 16) / 160
    this.#good.set(key, {
      principal,
      refreshAt: now + refreshAfterMs * share,
      goodUntil: Math.min(now + goodMs * share, end),
      usableUntil: Math.min(now + outageMs, end),
      misses: 0,
      retryAt: now,
    })
  }
}
