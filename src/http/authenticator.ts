import { isGeneratedKey } from '../identity/api-keys.ts'
import type { Attempt, FailureLimits } from '../identity/failure-limits.ts'
import { isOver } from '../identity/tokens.ts'
import { fingerprintOf } from '../lib/hashing.ts'
import { RegistryRefusal } from '../oci/errors.ts'
import type { Clock } from '../ports/clock.ts'
import type { CachingIdentity, Credential, Origin, Principal } from '../ports/identity.ts'
import { checkSameSite, type PresentedCredential } from './credentials.ts'
import type { Peers } from './peers.ts'

type Needs = {
  readonly identity: CachingIdentity
  readonly failures: FailureLimits
  readonly anonymous: Principal | undefined
  /** The embedded identity service, if it is in use. */
  readonly embedded: object | undefined
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
    return this.#app.identity.findCached(presented.credential)
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

  /** Tries something that may be a guess. Refuses it, before it is judged, when the client has failed too often. */
  attempt<T>(
    request: Request,
    tried: Omit<Attempt, 'from'>,
    work: () => Promise<T | undefined>,
  ): Promise<T | undefined> {
    return this.#app.failures.run({ ...tried, from: this.#peers.networksOf(request) }, work)
  }

  async #authenticate(request: Request, credential: Credential | undefined): Promise<Principal | undefined> {
    const { identity, clock } = this.#app
    if (credential === undefined) return undefined
    const remembered = identity.findCached(credential)
    if (remembered !== undefined) return remembered
    // Its own words condemn it: there is nothing to ask, and nothing is being guessed.
    if (credential.kind === 'bearer' && isOver(credential.secret, clock.now())) return undefined
    const tried = triedBy(credential, this.#app.embedded !== undefined)
    const ask = () => identity.authenticate(credential, this.#originOf(request))
    if (!identity.isUnguessable(credential)) return this.attempt(request, tried, ask)
    // A good token or API key of our own is not a guess, so the limits apply only after it has turned out to be bad.
    return (await ask()) ?? this.attempt(request, tried, async () => undefined)
  }

  #originOf(request: Request): Origin | undefined {
    const name = this.#peers.networksOf(request).at(-1)?.name
    return name === undefined ? undefined : { name, address: this.#peers.clientOf(request) }
  }
}

/** Our own keys and tokens are random or signed. What those of another service look like is not known. */
function triedBy(credential: Credential, isOurs: boolean): Omit<Attempt, 'from'> {
  const { kind, secret } = credential
  if (kind !== 'login') return { credential: fingerprintOf(secret), isUnguessable: isOurs }
  // As at the login for a token: the same password is the same guess there and here.
  const tried = `${credential.userName}\n${secret}`
  return isOurs && isGeneratedKey(secret)
    ? { credential: tried, isUnguessable: true }
    : { credential: tried, target: credential.userName }
}

export function refuseAnonymous({ kind }: Principal): void {
  if (kind === 'anonymous') throw new RegistryRefusal('unauthenticated')
}
