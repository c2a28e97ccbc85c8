import { hasJwtShape } from '../lib/jwt.ts'
import type { Credential, Origin, Principal, RememberingIdentity } from '../ports/identity.ts'
import { isGeneratedKey } from './api-keys.ts'
import { isScopedToken } from './scoped-tokens.ts'

/**
 * Scoped tokens, and all else. Each has a memory of its own: tokens are made by the thousand, and must not drive out of it
 * those whom another service would have to be asked about.
 */
export class EitherIdentity implements RememberingIdentity {
  readonly #scoped: RememberingIdentity
  readonly #others: RememberingIdentity
  readonly #isEmbedded: boolean

  /** `isEmbedded`: all tokens are signed by our own keys, not only the scoped ones, and all API keys are our own. */
  constructor(scoped: RememberingIdentity, others: RememberingIdentity, isEmbedded: boolean) {
    this.#scoped = scoped
    this.#others = others
    this.#isEmbedded = isEmbedded
  }

  recall(credential: Credential): Principal | undefined {
    // Where tokens come at all, scoped ones come most; and no API key is one.
    const scoped = credential.kind === 'bearer' ? this.#scoped.recall(credential) : undefined
    return scoped ?? this.#others.recall(credential)
  }

  authenticate(credential: Credential, origin?: Origin): Promise<Principal | undefined> {
    return (isScopedToken(credential) ? this.#scoped : this.#others).authenticate(credential, origin)
  }

  provesItself(credential: Credential): boolean {
    const { kind, secret } = credential
    if (kind !== 'bearer') return this.#isEmbedded && isGeneratedKey(secret)
    return hasJwtShape(secret) && (this.#isEmbedded || isScopedToken(credential))
  }

  forgetAll(): void {
    this.#scoped.forgetAll()
    this.#others.forgetAll()
  }
}
