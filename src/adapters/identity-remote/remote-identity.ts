import { CircuitBreaker, CircuitOpen } from '../../lib/circuit-breaker.ts'
import { fingerprintOf } from '../../lib/hashing.ts'
import { hasJwtShape, readJwtType, readUnprovedClaims } from '../../lib/jwt.ts'
import { NoSlot, Slots } from '../../lib/slots.ts'
import { Unavailable } from '../../oci/errors.ts'
import type { Clock } from '../../ports/clock.ts'
import type { Credential, Grant, Identity, Origin, Principal } from '../../ports/identity.ts'
import { type JsonObject, ServiceFault } from './get-json.ts'
import { KeySet } from './key-set.ts'
import { askLogin } from './login-question.ts'
import { findAccount, findText, hasReadableLimits, narrowGrants, readEnd, readRoles, rolesBehind } from './me-answer.ts'
import { askMe, type PlainCredential } from './me-question.ts'
import { RememberedWays } from './remembered-ways.ts'

/** Tokens that are checked here, with the service's public keys. */
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
  /** The members of an answer, or else the claims of its token, that name the account. */
  readonly accountFields: readonly string[]
  readonly tokens?: TokenRules | undefined
  /** Whether a secret can only be an API key, and must not be tried as a password. */
  readonly isApiKey?: (secret: string) => boolean
  /** Called once, when an answer has named no account. The claims of a token may still name one. */
  readonly onNoAccount?: () => void
}

/** Who somebody is, as the service or its token says it. */
interface Said {
  readonly answer: JsonObject
  readonly roles: readonly string[]
  /** Of a token that the answer is about, so they are true as well. */
  readonly claims: JsonObject | undefined
}

// Longer ones do not fit into the headers that services take; and a header's value cannot hold any other characters.
const sendable = /^[\x21-\x7e]{1,8192}$/

const subjectFields = ['user', 'sub', 'username', 'name', 'email']

// They stand in rows and keys. What the metadata store would keep in another form could become somebody else's name.
const nameLengthMax = 255
const controlCharacter = /\p{Cc}/u

// Ten thousand principals are remembered. All roles count for what somebody may do; the list itself is only to be shown.
const rolesShownMax = 100

/** RFC 8725, 3.11: tokens of other kinds may be signed with the same keys, and must not pass for these. */
const identityTokenTypes: ReadonlySet<string | undefined> = new Set([undefined, 'jwt', 'at+jwt', 'application/at+jwt'])

/** An identity service elsewhere, which is asked about each credential at its `/me`. It remembers nothing. */
export class RemoteIdentity implements Identity {
  readonly #options: RemoteIdentityOptions
  readonly #slots: Slots
  readonly #breaker: CircuitBreaker
  readonly #keySet: KeySet | undefined
  readonly #ways = new RememberedWays()
  #hasToldNoAccount = false

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
   * A user name with a password or an API key. A password gets a token, which is used until it ends or is refused. What is
   * no password is tried as a key, which must be the key of that user if the service names the key's user at all.
   */
  async #logIn(login: LoginCredential, origin: Origin | undefined): Promise<Principal | undefined> {
    const { userName, secret } = login
    const now = this.#options.clock.now()
    const way = this.#ways.find(userName, secret)
    if (way?.kind === 'token' && way.endsAt > now) {
      const principal = await this.#byToken(way.token, way.endsAt, origin)
      if (principal !== undefined) return principal
    }
    if (way?.kind === 'api-key' || this.#options.isApiKey?.(secret)) return this.#byNamedKey(login, origin)
    const { url, timeoutMs } = this.#options
    const given = { username: userName, password: secret }
    const reply = await this.#inTurn(() => askLogin(url, given, timeoutMs, origin?.address), origin)
    if (reply.kind === 'token') {
      const endsAt = now + reply.lifetimeMs
      this.#ways.put(userName, secret, { kind: 'token', token: reply.token, endsAt })
      return this.#byToken(reply.token, endsAt, origin)
    }
    const principal = await this.#byNamedKey(login, origin)
    if (principal === undefined && reply.kind === 'not-taken') throw unavailable(reply.fault)
    return principal
  }

  async #byToken(token: string, endsAt: number, origin: Origin | undefined): Promise<Principal | undefined> {
    const found = await this.#authenticate({ kind: 'bearer', secret: token }, origin)
    if (found === undefined) return undefined
    const end = Math.min(found.expiresAt ?? Infinity, endsAt)
    // One fingerprint for all tokens that the user's password gets, and none of the password, which it could betray.
    const fingerprint = fingerprintOf(`login:${found.account}:${found.subject}`)
    return { ...found, fingerprint, expiresAt: end === Infinity ? undefined : end }
  }

  async #byNamedKey({ userName, secret }: LoginCredential, origin: Origin | undefined): Promise<Principal | undefined> {
    const credential: PlainCredential = { kind: 'api-key', secret }
    const said = sendable.test(secret) ? await this.#askMe(credential, origin) : undefined
    const names = said && subjectFields.flatMap((field) => findText(said.answer, [field]) ?? [])
    const isOwn = names !== undefined && (names.length === 0 || names.includes(userName))
    this.#ways.put(userName, secret, isOwn ? { kind: 'api-key' } : undefined)
    return said !== undefined && isOwn ? this.#toPrincipal(credential, said) : undefined
  }

  async #authenticate(credential: PlainCredential, origin: Origin | undefined): Promise<Principal | undefined> {
    const { kind, secret } = credential
    if (!sendable.test(secret)) return undefined
    const { tokens } = this.#options
    const isCheckedHere = kind === 'bearer' && tokens !== undefined && hasJwtShape(secret)
    return isCheckedHere ? this.#check(credential, tokens, origin) : this.#ask(credential, origin)
  }

  async #check(
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
    if (roles === undefined || !isIdentity) return this.#ask(credential, origin)
    return this.#toPrincipal(credential, { answer: claims, roles, claims })
  }

  async #ask(credential: PlainCredential, origin: Origin | undefined): Promise<Principal | undefined> {
    const said = await this.#askMe(credential, origin)
    return said && this.#toPrincipal(credential, said)
  }

  async #askMe(credential: PlainCredential, origin: Origin | undefined): Promise<Said | undefined> {
    const { url, timeoutMs } = this.#options
    const reply = await this.#inTurn(() => askMe(url, credential, timeoutMs, origin?.address), origin)
    if (reply.kind === 'unknown') return undefined
    if (reply.kind === 'not-taken') throw unavailable(reply.fault)
    const claims = credential.kind === 'bearer' ? readUnprovedClaims(credential.secret) : undefined
    return { ...reply, claims }
  }

  async #inTurn<T>(ask: () => Promise<T>, origin: Origin | undefined): Promise<T> {
    try {
      return await this.#slots.run(() => this.#breaker.run(ask, origin?.name))
    } catch (error) {
      const isTrouble = error instanceof ServiceFault || error instanceof CircuitOpen || error instanceof NoSlot
      throw isTrouble ? unavailable(error) : error
    }
  }

  #accountOf({ answer, claims = {} }: Said): string {
    const { accountFields, onNoAccount } = this.#options
    const named = findAccount(answer, accountFields)
    if (named !== undefined) return named
    // Also where the claims name one: an API key of the same user has no claims and leads to `default`.
    if (!this.#hasToldNoAccount) onNoAccount?.()
    this.#hasToldNoAccount = true
    return findAccount(claims, accountFields) ?? 'default'
  }

  #toPrincipal({ secret }: PlainCredential, said: Said): Principal {
    const { answer, roles, claims } = said
    const { grantsFor } = this.#options
    if (!hasReadableLimits(answer)) throw unavailable(new ServiceFault('rights or repositories that are not a list'))
    const fingerprint = fingerprintOf(secret)
    const account = this.#accountOf(said)
    const subject = findText(answer, subjectFields) ?? findText(claims, ['sub']) ?? `key:${fingerprint}`
    // Another name in its place would be another tenant.
    if (!isName(account) || !isName(subject)) throw unavailable(new ServiceFault('a name that cannot be kept'))
    const end = Math.min(typeof claims?.['exp'] === 'number' ? claims['exp'] * 1000 : Infinity, readEnd(answer))
    return {
      account,
      subject,
      roles: roles.slice(0, rolesShownMax),
      grants: narrowGrants(grantsFor(rolesBehind(answer, roles)), answer),
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
  return new Unavailable('the identity service', { cause })
}
