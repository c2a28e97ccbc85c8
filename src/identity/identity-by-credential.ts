import { hasJwtShape } from '../lib/jwt.ts'
import type { CachingIdentity, Credential, Origin, Principal } from '../ports/identity.ts'
import { isGeneratedKey } from './api-keys.ts'
import { isScopedToken } from './scoped-tokens.ts'

/**
 * Checks scoped tokens with one identity and all other credentials with another. Each has a cache of its own, because
 * there may be thousands of scoped tokens, and they must not displace results of a remote identity service.
 */
export class IdentityByCredential implements CachingIdentity {
  readonly #scoped: CachingIdentity
  readonly #other: CachingIdentity
  readonly #isEmbedded: boolean

  /** `isEmbedded`: this service creates all API keys and signs all tokens, not only the scoped ones. */
  constructor(scoped: CachingIdentity, other: CachingIdentity, isEmbedded: boolean) {
    this.#scoped = scoped
    this.#other = other
    this.#isEmbedded = isEmbedded
  }

  findCached(credential: Credential): Principal | undefined {
    // Most bearer tokens are scoped tokens.
    const scoped = credential.kind === 'bearer' ? this.#scoped.findCached(credential) : undefined
    return scoped ?? this.#other.findCached(credential)
  }

  authenticate(credential: Credential, origin?: Origin): Promise<Principal | undefined> {
    return (isScopedToken(credential) ? this.#scoped : this.#other).authenticate(credential, origin)
  }

  isUnguessable(credential: Credential): boolean {
    const { kind, secret } = credential
    if (kind !== 'bearer') return this.#isEmbedded && isGeneratedKey(secret)
    return hasJwtShape(secret) && (this.#isEmbedded || isScopedToken(credential))
  }

  clear(): void {
    this.#scoped.clear()
    this.#other.clear()
  }
}
