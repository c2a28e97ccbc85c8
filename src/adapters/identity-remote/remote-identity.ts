import { CircuitBreaker, CircuitOpen } from '../../lib/circuit-breaker.ts'
import { fingerprintOf } from '../../lib/fingerprint.ts'
import { hasJwtShape, readJwtType, readUnprovedClaims } from '../../lib/jwt.ts'
import { NoSlot, Slots } from '../../lib/slots.ts'
import { Unavailable } from '../../oci/errors.ts'
import type { Clock } from '../../ports/clock.ts'
import type { Credential, Grant, Identity, Principal } from '../../ports/identity.ts'
import { type JsonObject, ServiceFault } from './get-json.ts'
import { KeySet } from './key-set.ts'
import { findAccount, findText, narrowGrants, readEnd, readRoles, rolesBehind } from './me-answer.ts'
import { askMe, type MeReply } from './me-question.ts'

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
  /** Where an answer, or else a token, names the account. */
  readonly accountFields: readonly string[]
  readonly tokens?: TokenRules | undefined
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

  constructor(options: RemoteIdentityOptions) {
    const { clock, callsMax, queueMax, tokens } = options
    this.#options = options
    this.#slots = new Slots(callsMax, queueMax)
    this.#breaker = new CircuitBreaker(() => clock.now())
    this.#keySet = tokens && new KeySet(tokens.jwksUrl, clock)
  }

  async authenticate(credential: Credential, origin?: string): Promise<Principal | undefined> {
    const { kind, secret } = credential
    if (!sendable.test(secret)) return undefined
    const { tokens } = this.#options
    const isCheckedHere = kind === 'bearer' && tokens !== undefined && hasJwtShape(secret)
    return isCheckedHere ? this.#check(credential, tokens, origin) : this.#ask(credential, origin)
  }

  async #check(credential: Credential, tokens: TokenRules, origin: string | undefined): Promise<Principal | undefined> {
    const { algorithms, issuer, audience, skewMs } = tokens
    const rules = { algorithms, issuer, audience, skewSeconds: skewMs / 1000 }
    const claims = await this.#keySet?.verify(credential.secret, rules)
    if (claims === undefined) return undefined
    const roles = readRoles(claims)
    const isIdentity = identityTokenTypes.has(readJwtType(credential.secret)?.toLowerCase())
    if (roles === undefined || !isIdentity) return this.#ask(credential, origin)
    return this.#toPrincipal(credential, { answer: claims, roles, claims })
  }

  async #ask(credential: Credential, origin: string | undefined): Promise<Principal | undefined> {
    const reply = await this.#askInTurn(credential, origin)
    if (reply.kind === 'unknown') return undefined
    if (reply.kind === 'not-taken') throw unavailable(reply.fault)
    const claims = credential.kind === 'bearer' ? readUnprovedClaims(credential.secret) : undefined
    return this.#toPrincipal(credential, { ...reply, claims })
  }

  async #askInTurn(credential: Credential, origin: string | undefined): Promise<MeReply> {
    const { url, timeoutMs } = this.#options
    try {
      return await this.#slots.run(() => this.#breaker.run(() => askMe(url, credential, timeoutMs), origin))
    } catch (error) {
      const isTrouble = error instanceof ServiceFault || error instanceof CircuitOpen || error instanceof NoSlot
      throw isTrouble ? unavailable(error) : error
    }
  }

  #toPrincipal({ secret }: Credential, { answer, roles, claims }: Said): Principal {
    const { accountFields, grantsFor } = this.#options
    const fingerprint = fingerprintOf(secret)
    const account = findAccount([answer, claims], accountFields) ?? 'default'
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

function isName(text: string): boolean {
  return text.length <= nameLengthMax && text.isWellFormed() && !controlCharacter.test(text)
}

function unavailable(cause: Error): Unavailable {
  return new Unavailable('the identity service', { cause })
}
