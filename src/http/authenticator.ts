import type { Attempt, FailureLimits } from '../identity/failure-limits.ts'
import { isOver } from '../identity/tokens.ts'
import { fingerprintOf } from '../lib/fingerprint.ts'
import { RegistryRefusal } from '../oci/errors.ts'
import type { Clock } from '../ports/clock.ts'
import type { Credential, Principal, RememberingIdentity } from '../ports/identity.ts'
import { checkSameSite, type PresentedCredential } from './credentials.ts'
import type { Peers } from './peers.ts'

type Needs = {
  readonly identity: RememberingIdentity
  readonly failures: FailureLimits
  readonly anonymous: Principal | undefined
  readonly clock: Pick<Clock, 'now'>
}

/** The one place that authenticates. */
export class Authenticator {
  readonly #app: Needs
  readonly #peers: Peers

  constructor(app: Needs, peers: Peers) {
    this.#app = app
    this.#peers = peers
  }

  /** Who is calling, if that is known without asking anybody: nearly every request ends here. */
  recall(presented: PresentedCredential | undefined): Principal | undefined {
    // A cookie alone is not enough to know; see `identify`.
    if (presented?.credential === undefined || presented.carrier === 'cookie') return undefined
    return this.#app.identity.recall(presented.credential)
  }

  /** Who is calling: the anonymous principal where there are no credentials at all and strangers are welcome somewhere. */
  async identify(request: Request, presented: PresentedCredential | undefined): Promise<Principal> {
    if (presented === undefined) {
      if (this.#app.anonymous === undefined) throw new RegistryRefusal('unauthenticated')
      return this.#app.anonymous
    }
    const principal = await this.#authenticate(request, presented.credential)
    if (principal === undefined) throw new RegistryRefusal('credentials-invalid')
    if (presented.carrier === 'cookie') {
      checkSameSite(request.method, request.headers, this.#peers.originOf(request))
    }
    return principal
  }

  /** Tries something that may be a guess; who guesses too often is refused before it is looked at. */
  async attempt<T>(
    request: Request,
    tried: Omit<Attempt, 'from'>,
    work: () => Promise<T | undefined>,
  ): Promise<T | undefined> {
    const attempt = { ...tried, from: this.#peers.networkOf(request) }
    this.#app.failures.check(attempt)
    return this.#judge(attempt, work)
  }

  /** As `attempt`, for passwords: those that come together are held back too. */
  async attemptLogin<T>(
    request: Request,
    tried: Omit<Attempt, 'from'>,
    work: () => Promise<T | undefined>,
  ): Promise<T | undefined> {
    const attempt = { ...tried, from: this.#peers.networkOf(request) }
    this.#app.failures.enter(attempt)
    try {
      return await this.#judge(attempt, work)
    } finally {
      this.#app.failures.leave(attempt)
    }
  }

  async #judge<T>(attempt: Attempt, work: () => Promise<T | undefined>): Promise<T | undefined> {
    const found = await work()
    if (found === undefined) this.#app.failures.noteFailure(attempt)
    else this.#app.failures.noteSuccess(attempt)
    return found
  }

  async #authenticate(request: Request, credential: Credential | undefined): Promise<Principal | undefined> {
    const { identity, clock } = this.#app
    if (credential === undefined) return undefined
    const remembered = identity.recall(credential)
    if (remembered !== undefined) return remembered
    // Its own words condemn it: there is nothing to ask, and nothing is being guessed.
    if (credential.kind === 'bearer' && isOver(credential.secret, clock.now())) return undefined
    const tried = { credential: fingerprintOf(credential.secret) }
    const ask = () => identity.authenticate(credential)
    if (!identity.provesItself(credential)) return this.attempt(request, tried, ask)
    // A token that is good is no guess, however new it is and whoever guesses beside it.
    return (await ask()) ?? this.attempt(request, tried, async () => undefined)
  }
}
