import { isExpiredJwt, ownAlgorithms, readJwtType, readUnprovedClaims, signJwt } from '../lib/jwt.ts'
import type { Clock } from '../ports/clock.ts'
import type { User } from '../ports/users.ts'
import type { KeyRing } from './key-ring.ts'

/** spec.md, "Obtaining a bearer token": the token lifetime is 86400 seconds. */
export const tokenLifetimeSeconds = 86_400

export const tokenIssuer = 'berth'
const audience = 'berth'
const type = 'JWT'

export interface TokenClaims {
  readonly userName: string
  readonly epoch: number
  readonly expiresAt: number
}

/** The clock of another issuer may differ. Tokens of this service are checked without tolerance. */
const clocksDifferMs = 60_000

/** Whether the token says that it has expired. Does not verify the token. */
export function isOver(token: string, nowMs: number): boolean {
  const isOurs = readUnprovedClaims(token)?.iss === tokenIssuer
  return isExpiredJwt(token, nowMs, isOurs ? 0 : clocksDifferMs)
}

/** The tokens that users of the embedded identity service get for their passwords. */
export class Tokens {
  readonly #keys: KeyRing
  readonly #clock: Pick<Clock, 'now'>

  constructor(keys: KeyRing, clock: Pick<Clock, 'now'>) {
    this.#keys = keys
    this.#clock = clock
  }

  async issue(user: User): Promise<string> {
    const now = Math.floor(this.#clock.now() / 1000)
    const claims = {
      iss: tokenIssuer,
      aud: audience,
      sub: user.name,
      scope: user.account,
      roles: [...user.roles],
      epoch: user.tokenEpoch,
      iat: now,
      exp: now + tokenLifetimeSeconds,
    }
    return signJwt(claims, { ...(await this.#keys.signer()), type })
  }

  /** The claims of a valid token of this service. Undefined for any other. */
  async verify(token: string): Promise<TokenClaims | undefined> {
    // A scoped token has the same signing keys, and must not be accepted here.
    if (readJwtType(token) !== type) return undefined
    const verdict = await this.#keys.verify(token, {
      algorithms: ownAlgorithms,
      issuer: tokenIssuer,
      audience,
      nowMs: this.#clock.now(),
    })
    if (!('claims' in verdict)) return undefined
    const { sub, exp, epoch } = verdict.claims
    if (sub === undefined || exp === undefined || typeof epoch !== 'number') return undefined
    return { userName: sub, epoch, expiresAt: exp * 1000 }
  }
}
