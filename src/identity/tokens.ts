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

/** Others may have another clock; what we issued has ended when we say so. */
const clocksDifferMs = 60_000

/** Whether a token's own words condemn it. Nothing else of it is proved. */
export function isOver(token: string, nowMs: number): boolean {
  const isOurs = readUnprovedClaims(token)?.iss === tokenIssuer
  return isExpiredJwt(token, nowMs, isOurs ? 0 : clocksDifferMs)
}

/** The tokens that users of the embedded identity service get for their password. */
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

  /** The claims of a token that we issued and that is still good. Only our keys count, whatever the header names. */
  async verify(token: string): Promise<TokenClaims | undefined> {
    // A scoped token is signed by the same keys, and must not pass for one of these.
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
