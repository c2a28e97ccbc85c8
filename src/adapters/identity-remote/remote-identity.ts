import { CircuitBreaker, CircuitOpen } from '../../lib/circuit-breaker.ts'
import { fingerprintOf } from '../../lib/hashing.ts'
import { hasJwtShape, readJwtType, readUnprovedClaims } from '../../lib/jwt.ts'
import { NoSlot, Slots } from '../../lib/slots.ts'
import { Unavailable } from '../../oci/errors.ts'
import type { Clock } from '../../ports/clock.ts'
import type { Credential, Grant, Identity, Origin, Principal } from '../../ports/identity.ts'
import { type PlainCredential, requestLogin, requestMe } from './credential-requests.ts'
import { type JsonObject, ServiceFault } from './json-request.ts'
import { KeySet } from './key-set.ts'
import { LoginCache } from './login-cache.ts'
import {
  findAccount,
  findText,
  hasReadableLimits,
  narrowGrants,
  readEnd,
  readGrantingRoles,
  readRoles,
} from './me-response.ts'

/** How tokens are verified locally, with the public keys of the service. */
export interface TokenRules {
  readonly jwksUrl: string
  readonly issuer: string | undefined
  readonly audience: string | undefined
  readonly algorithms: readonly string[]
  readonly skewMs: number
}

export interface RemoteIdentityOptions {
  readonly url: string
  readonly grantsFor: (roles: readonly string[]) => readonly Grant[]
  readonly clock: Pick<Clock, 'now'>
  readonly timeoutMs: number
  readonly callsMax: number
  readonly queueMax: number
  /** The members of the answer, or otherwise the claims of the token, that name the account. */
  readonly accountFields: readonly string[]
  readonly tokens?: TokenRules | undefined
  /** Whether the secret can only be an API key. Then it is never tried as a password. */
  readonly isApiKey?: (secret: string) => boolean
  /** Called once, at the first answer that names no account. The claims of the token may still name one. */
  readonly onNoAccount?: () => void
}

/** The caller, as the service or its token describes it. */
interface Description {
  readonly answer: JsonObject
  readonly roles: readonly string[]
  /** Claims of the token that the answer is about. The answer confirms the token, so the claims are valid too. */
  readonly claims: JsonObject | undefined
}

// The length and the characters that a header can carry.
const sendable = /^[\x21-\x7e]{1,8192}$/

const subjectFields = ['user', 'sub', 'username', 'name', 'email']

// Accounts and subjects are stored in rows. A name that the metadata store would change could become another caller's name.
const nameLengthMax = 255
const controlCharacter = /\p{Cc}/u

// Limits the memory of cached principals. The grants come from all roles; this list is only shown.
const rolesShownMax = 100

/** RFC 8725, 3.11: tokens of other types may be signed with the same keys and must not be accepted. */
const identityTokenTypes: ReadonlySet<string | undefined> = new Set([undefined, 'jwt', 'at+jwt', 'application/at+jwt'])

/**
 * A remote identity service, which verifies each credential at its `/me`, or by its public keys if the credential is a token
 * and `auth.jwks_url` is set. Principals are cached elsewhere (`identity/`). Calls have a limit of number and time, and a
 * circuit breaker; every failure that says nothing about the credential becomes `Unavailable`, never an invalid credential.
 */
export class RemoteIdentity implements Identity {
  readonly #options: RemoteIdentityOptions
  readonly #slots: Slots
  readonly #breaker: CircuitBreaker
  readonly #keySet: KeySet | undefined
  readonly #logins = new LoginCache()
  #hasReportedNoAccount = false

  constructor(options: RemoteIdentityOptions) {
    const { clock, callsMax, queueMax, tokens } = options
    this.#options = options
    this.#slots = new Slots(callsMax, queueMax)
    this.#breaker = new CircuitBreaker(() => clock.now())
    this.#keySet = tokens && new KeySet(tokens.jwksUrl, clock)
  }

  authenticate(credential: Credential, origin?: Origin): Promise<Principal | undefined> {
    return credential.kind === 'login' ? this.#logIn(credential, origin) : this.#authenticate(credential, origin)
  }

  /**
   * A user name with a password or an API key. A password is exchanged for a token, which is used until it expires or is
   * rejected. If the secret is no valid password it is tried as an API key. The key must belong to that user, if the service
   * names the user of the key at all.
   */
  async #logIn(login: LoginCredential, origin: Origin | undefined): Promise<Principal | undefined> {
    const { userName, secret } = login
    const now = this.#options.clock.now()
    const accepted = this.#logins.find(userName, secret)
    if (accepted?.kind === 'token' && accepted.endsAt > now) {
      const principal = await this.#byToken(accepted.token, accepted.endsAt, origin)
      if (principal !== undefined) return principal
    }
    if (accepted?.kind === 'api-key' || this.#options.isApiKey?.(secret)) return this.#byNamedKey(login, origin)
    const { url, timeoutMs } = this.#options
    const posted = { username: userName, password: secret }
    const reply = await this.#call(() => requestLogin(url, posted, timeoutMs, origin?.address), origin)
    if (reply.kind === 'valid') {
      const endsAt = now + reply.lifetimeMs
      this.#logins.add(userName, secret, { kind: 'token', token: reply.token, endsAt })
      return this.#byToken(reply.token, endsAt, origin)
    }
    const principal = await this.#byNamedKey(login, origin)
    if (principal === undefined && reply.kind === 'refused') throw unavailable(reply.fault)
    return principal
  }

  async #byToken(token: string, endsAt: number, origin: Origin | undefined): Promise<Principal | undefined> {
    const found = await this.#authenticate({ kind: 'bearer', secret: token }, origin)
    if (found === undefined) return undefined
    const end = Math.min(found.expiresAt ?? Infinity, endsAt)
    // One fingerprint for all tokens of this login. It does not depend on the password, because that could be guessed from it.
    const fingerprint = fingerprintOf(`login:${found.account}:${found.subject}`)
    return { ...found, fingerprint, expiresAt: end === Infinity ? undefined : end }
  }

  async #byNamedKey({ userName, secret }: LoginCredential, origin: Origin | undefined): Promise<Principal | undefined> {
    const credential: PlainCredential = { kind: 'api-key', secret }
    const found = sendable.test(secret) ? await this.#describe(credential, origin) : undefined
    const names = subjectFields.flatMap((field) => findText(found?.answer, [field]) ?? [])
    if (found === undefined || (names.length > 0 && !names.includes(userName))) {
      this.#logins.remove(userName, secret)
      return undefined
    }
    this.#logins.add(userName, secret, { kind: 'api-key' })
    return this.#toPrincipal(credential, found)
  }

  async #authenticate(credential: PlainCredential, origin: Origin | undefined): Promise<Principal | undefined> {
    const { kind, secret } = credential
    if (!sendable.test(secret)) return undefined
    const { tokens } = this.#options
    const isLocal = kind === 'bearer' && tokens !== undefined && hasJwtShape(secret)
    return isLocal ? this.#verifyToken(credential, tokens, origin) : this.#requestPrincipal(credential, origin)
  }

  async #verifyToken(
    credential: PlainCredential,
    tokens: TokenRules,
    origin: Origin | undefined,
  ): Promise<Principal | undefined> {
    const { algorithms, issuer, audience, skewMs } = tokens
    const rules = { algorithms, issuer, audience, skewSeconds: skewMs / 1000 }
    const claims = await this.#keySet?.verify(credential.secret, rules)
    if (claims === undefined) return undefined
    const roles = readRoles(claims)
    const isIdentity = identityTokenTypes.has(readJwtType(credential.secret)?.toLowerCase())
    // The token alone does not say enough.
    if (roles === undefined || !isIdentity) return this.#requestPrincipal(credential, origin)
    return this.#toPrincipal(credential, { answer: claims, roles, claims })
  }

  async #requestPrincipal(credential: PlainCredential, origin: Origin | undefined): Promise<Principal | undefined> {
    const description = await this.#describe(credential, origin)
    return description && this.#toPrincipal(credential, description)
  }

  /** Undefined if the credential is not valid. */
  async #describe(credential: PlainCredential, origin: Origin | undefined): Promise<Description | undefined> {
    const { url, timeoutMs } = this.#options
    const reply = await this.#call(() => requestMe(url, credential, timeoutMs, origin?.address), origin)
    if (reply.kind === 'invalid') return undefined
    if (reply.kind === 'refused') throw unavailable(reply.fault)
    const claims = credential.kind === 'bearer' ? readUnprovedClaims(credential.secret) : undefined
    return { ...reply, claims }
  }

  /** Calls the service within the limits of the slots and of the circuit breaker. */
  async #call<T>(request: () => Promise<T>, origin: Origin | undefined): Promise<T> {
    try {
      return await this.#slots.run(() => this.#breaker.run(request, origin?.name))
    } catch (error) {
      const isUnavailable = error instanceof ServiceFault || error instanceof CircuitOpen || error instanceof NoSlot
      throw isUnavailable ? unavailable(error) : error
    }
  }

  #accountOf({ answer, claims = {} }: Description): string {
    const { accountFields, onNoAccount } = this.#options
    const named = findAccount(answer, accountFields)
    if (named !== undefined) return named
    // Also if the claims name an account: an API key of the same user has no claims and would get the account `default`.
    if (!this.#hasReportedNoAccount) onNoAccount?.()
    this.#hasReportedNoAccount = true
    return findAccount(claims, accountFields) ?? 'default'
  }

  #toPrincipal({ secret }: PlainCredential, description: Description): Principal {
    const { answer, roles, claims } = description
    const { grantsFor } = this.#options
    if (!hasReadableLimits(answer)) throw unavailable(new ServiceFault('rights or repositories that are not a list'))
    const fingerprint = fingerprintOf(secret)
    const account = this.#accountOf(description)
    const subject = findText(answer, subjectFields) ?? findText(claims, ['sub']) ?? `key:${fingerprint}`
    // A name that was changed to fit would belong to another tenant.
    if (!isName(account) || !isName(subject)) throw unavailable(new ServiceFault('a name that cannot be kept'))
    const end = Math.min(typeof claims?.['exp'] === 'number' ? claims['exp'] * 1000 : Infinity, readEnd(answer))
    return {
      account,
      subject,
      roles: roles.slice(0, rolesShownMax),
      grants: narrowGrants(grantsFor(readGrantingRoles(answer, roles)), answer),
      fingerprint,
      expiresAt: end === Infinity ? undefined : end,
    }
  }
}

type LoginCredential = Extract<Credential, { kind: 'login' }>

function isName(text: string): boolean {
  return text.length <= nameLengthMax && text.isWellFormed() && !controlCharacter.test(text)
}

function unavailable(cause: Error): Unavailable {
  return new Unavailable('identity-service', { cause })
}
