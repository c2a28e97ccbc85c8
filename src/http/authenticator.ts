import { isGeneratedKey } from '../identity/api-key-secrets.ts'
import type { Attempt, AttemptLimits } from '../identity/failure-limits.ts'
import { isOver } from '../identity/tokens.ts'
import { fingerprintOf } from '../lib/hashing.ts'
import { RegistryRefusal } from '../oci/errors.ts'
import type { Clock } from '../ports/clock.ts'
import type { CachingIdentity, Credential, Origin, Principal } from '../ports/identity.ts'
import { checkSameSite, type PresentedCredential } from './credentials.ts'
import type { Peers } from './peers.ts'

type Needs = {
  readonly identity: CachingIdentity
  readonly failures: AttemptLimits
  readonly anonymous: Principal | undefined
  /** The embedded identity service, if it is in use. */
  readonly embedded: object | undefined
  readonly clock: Pick<Clock, 'now'>
}

/** Finds the caller of a request. No other code authenticates. */
export class Authenticator {
  readonly #app: Needs
  readonly #peers: Peers

  constructor(app: Needs, peers: Peers) {
    this.#app = app
    this.#peers = peers
  }

  /**
   * The caller, if the credential is in the cache. This is the case for nearly every request. `present` finds the
   * credential that the request presents; it is called only if the `Authorization` header was not seen lately.
   */
  findCached(headers: Headers, present: () => PresentedCredential | undefined): Principal | undefined {
    const { identity } = this.#app
    const authorization = headers.get('authorization')
    const parse = () => {
      const presented = present()
      return presented?.carrier === 'authorization' ? presented.credential : undefined
    }
    const found = authorization === null ? undefined : identity.findByHeader(authorization, parse)
    if (found !== undefined) return found
    const presented = present()
    // A cookie also needs the check of the origin; see `identify`.
    if (presented?.credential === undefined || presented.carrier === 'cookie') return undefined
    return identity.findCached(presented.credential)
  }

  /**
   * The caller. Without a credential it is the anonymous principal, if some repositories are open to anonymous callers.
   */
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

  /** Runs `work`, which checks a possible guess. Refuses it before that if the client has failed too often. */
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
    // An expired token is refused by its own content. It is no guess, and the identity service is not called.
    if (credential.kind === 'bearer' && isOver(credential.secret, clock.now())) return undefined
    const tried = attemptOf(credential, this.#app.embedded !== undefined)
    const authenticate = () => identity.authenticate(credential, this.#originOf(request))
    if (!identity.isUnguessable(credential)) return this.attempt(request, tried, authenticate)
    // A valid token or API key of this registry is no guess, so the limits apply only after it has turned out to be
    // invalid.
    return (await authenticate()) ?? this.attempt(request, tried, async () => undefined)
  }

  #originOf(request: Request): Origin | undefined {
    const name = this.#peers.networksOf(request).at(-1)?.name
    return name === undefined ? undefined : { name, address: this.#peers.clientOf(request) }
  }
}

/** Keys and tokens of this registry are random or signed. The format of those of another service is unknown. */
function attemptOf(credential: Credential, isOurs: boolean): Omit<Attempt, 'from'> {
  const { kind, secret } = credential
  if (kind !== 'login') return { credential: fingerprintOf(secret), isUnguessable: isOurs }
  // The same text as in the login for a token, so that one password counts as one guess in both places.
  const tried = `${credential.userName}\n${secret}`
  return isOurs && isGeneratedKey(secret)
    ? { credential: tried, isUnguessable: true }
    : { credential: tried, target: credential.userName }
}

export function refuseAnonymous({ kind }: Principal): void {
  if (kind === 'anonymous') throw new RegistryRefusal('unauthenticated')
}
