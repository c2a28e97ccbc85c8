import { LRUCache } from 'lru-cache'
import { SecretHasher } from '../lib/hashing.ts'
import { hasJwtShape } from '../lib/jwt.ts'
import type { Clock } from '../ports/clock.ts'
import type { CachingIdentity, Credential, Origin, Principal } from '../ports/identity.ts'
import { isGeneratedKey } from './api-key-secrets.ts'
import type { CachedIdentity, CachedPrincipal } from './cached-identity.ts'
import { isScopedToken } from './scoped-tokens.ts'

const headersMax = 10_000

/**
 * Checks scoped tokens with one identity and all other credentials with another. Each has a cache of its own, because
 * there may be thousands of scoped tokens, and they must not displace results of a remote identity service.
 */
export class IdentityByCredential implements CachingIdentity {
  readonly #scoped: CachedIdentity
  readonly #other: CachedIdentity
  readonly #isEmbedded: boolean
  readonly #clock: Pick<Clock, 'now'>
  readonly #clearElsewhere: () => Promise<void>
  readonly #hasher = new SecretHasher()
  /** By the hash of a header: an entry of one of the two caches. It is used only while that cache would use it too. */
  readonly #byHeader = new LRUCache<string, CachedPrincipal>({ max: headersMax })

  /**
   * `isEmbedded`: this service creates all API keys and signs all tokens, not only the scoped ones. `clearElsewhere`
   * empties the caches of the other processes of this server.
   */
  constructor(
    scoped: CachedIdentity,
    other: CachedIdentity,
    isEmbedded: boolean,
    clock: Pick<Clock, 'now'>,
    clearElsewhere: () => Promise<void> = async () => undefined,
  ) {
    this.#scoped = scoped
    this.#other = other
    this.#isEmbedded = isEmbedded
    this.#clock = clock
    this.#clearElsewhere = clearElsewhere
  }

  findCached(credential: Credential): Principal | undefined {
    return this.#find(credential)?.principal
  }

  findByHeader(value: string, parse: () => Credential | undefined): Principal | undefined {
    const key = this.#hasher.hash(value)
    const recent = this.#byHeader.get(key)
    if (recent !== undefined) {
      const now = this.#clock.now()
      if (now < recent.refreshAt && now < recent.goodUntil) return recent.principal
    }
    const credential = parse()
    const cached = credential && this.#find(credential)
    if (cached !== undefined) this.#byHeader.set(key, cached)
    return cached?.principal
  }

  authenticate(credential: Credential, origin?: Origin): Promise<Principal | undefined> {
    return (isScopedToken(credential) ? this.#scoped : this.#other).authenticate(credential, origin)
  }

  isUnguessable(credential: Credential): boolean {
    const { kind, secret } = credential
    if (kind !== 'bearer') return this.#isEmbedded && isGeneratedKey(secret)
    return hasJwtShape(secret) && (this.#isEmbedded || isScopedToken(credential))
  }

  async clear(): Promise<void> {
    this.clearHere()
    await this.#clearElsewhere()
  }

  /** Empties the caches of this process only. */
  clearHere(): void {
    this.#byHeader.clear()
    this.#scoped.clear()
    this.#other.clear()
  }

  #find(credential: Credential): CachedPrincipal | undefined {
    // Most bearer tokens are scoped tokens.
    const scoped = credential.kind === 'bearer' ? this.#scoped.find(credential) : undefined
    return scoped ?? this.#other.find(credential)
  }
}
