import { hasJwtShape } from '../lib/jwt.ts'
import type { CachingIdentity, Credential, Origin, Principal } from '../ports/identity.ts'
import { isGeneratedKey } from './api-keys.ts'
import { isScopedToken } from './scoped-tokens.ts'

/**
 * Scoped tokens, and all else. Each has a memory of its own: tokens are made by the thousand, and must not drive out of it
 * those whom another service would have to be asked about.
 */
export class IdentityByCredential implements CachingIdentity {
  readonly #scoped: CachingIdentity
  readonly #others: CachingIdentity
  readonly #isEmbedded: boolean

  /** `isEmbedded`: all tokens are signed by our own keys, not only the scoped ones, and all API keys are our own. */
  constructor(scoped: CachingIdentity, others: CachingIdentity, isEmbedded: boolean) {
    this.#scoped = scoped
    this.#others = others
    this.#isEmbedded = isEmbedded
  }

  findCached(credential: Credential): Principal | undefined {
    // Where tokens come at all, scoped ones come most; and no API key is one.
    const scoped = credential.kind === 'bearer' ? this.#scoped.findCached(credential) : undefined
    return scoped ?? this.#others.findCached(credential)
  }

  authenticate(credential: Credential, origin?: Origin): Promise<Principal | undefined> {
    return (isScopedToken(credential) ? this.#scoped : this.#others).authenticate(credential, origin)
  }

  isUnguessable(credential: Credential): boolean {
    const { kind, secret } = credential
    if (kind !== 'bearer') return this.#isEmbedded && isGeneratedKey(secret)
    return hasJwtShape(secret) && (this.#isEmbedded || isScopedToken(credential))
  }

  clear(): void {
    this.#scoped.clear()
    this.#others.clear()
  }
}
