import { LRUCache } from 'lru-cache'
import type { Clock } from '../ports/clock.ts'
import type { Credential, Identity, Principal } from '../ports/identity.ts'

const entriesMax = 10_000

/**
 * Remembers for a short while who stood behind a credential: a push makes many requests with one. The memory is keyed by
 * an HMAC with a key of this process, so no secret lies in it, and finding an entry tells nothing by its timing.
 */
export class CachedIdentity implements Identity {
  readonly #inner: Identity
  readonly #clock: Pick<Clock, 'now'>
  readonly #maxAgeMs: number
  readonly #hmac = new Bun.CryptoHasher('sha256', crypto.getRandomValues(new Uint8Array(32)))
  readonly #known = new LRUCache<string, { readonly principal: Principal; readonly until: number }>({ max: entriesMax })

  constructor(inner: Identity, clock: Pick<Clock, 'now'>, maxAgeMs: number) {
    this.#inner = inner
    this.#clock = clock
    this.#maxAgeMs = maxAgeMs
  }

  async authenticate(credential: Credential): Promise<Principal | undefined> {
    const key = this.#hmac.copy().update(`${credential.kind}:${credential.secret}`).digest('base64')
    const now = this.#clock.now()
    const known = this.#known.get(key)
    if (known !== undefined && known.until > now) return known.principal

    const principal = await this.#inner.authenticate(credential)
    if (principal === undefined) {
      this.#known.delete(key)
      return undefined
    }
    this.#known.set(key, { principal, until: Math.min(now + this.#maxAgeMs, principal.expiresAt ?? Infinity) })
    return principal
  }
}
