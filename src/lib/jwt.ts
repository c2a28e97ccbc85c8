import {
  createLocalJWKSet,
  decodeJwt,
  decodeProtectedHeader,
  errors,
  exportJWK,
  generateKeyPair,
  importJWK,
  type JSONWebKeySet,
  type JWTPayload,
  jwtVerify,
  SignJWT,
} from 'jose'

/** JSON Web Tokens. The one place that knows the library. */
export type Claims = JWTPayload
export type Jwk = Readonly<Record<string, unknown>>

/** What a token must be, beside well signed. */
export interface JwtRules {
  /** Never taken from the token: only these count, whatever its header names. */
  readonly algorithms: readonly string[]
  readonly issuer?: string | undefined
  readonly audience?: string | undefined
  /** The header's `typ`, where kinds of tokens must not stand in for each other. */
  readonly type?: string | undefined
  readonly nowMs: number
  readonly skewSeconds?: number
}

/** The claims, or why there are none: no key of that name is known, or anything else is wrong. */
export type Verdict = { readonly claims: Claims } | { readonly fault: 'unknown-key' | 'invalid' }

// The bound is checked before anything is decoded.
const tokenLengthMax = 8_192

/** Public keys that tokens are checked against. Keys that a token brings along (`jwk`, `jku`, `x5u`, `x5c`) mean nothing. */
export class JwtKeys {
  readonly #find: ReturnType<typeof createLocalJWKSet>

  /** Throws when the set is no set of keys. */
  constructor(keys: readonly Jwk[]) {
    this.#find = createLocalJWKSet({ keys } as unknown as JSONWebKeySet)
  }

  async verify(
    token: string,
    { algorithms, issuer, audience, type, nowMs, skewSeconds = 0 }: JwtRules,
  ): Promise<Verdict> {
    if (!hasJwtShape(token)) return { fault: 'invalid' }
    try {
      const { payload } = await jwtVerify(token, this.#find, {
        algorithms: [...algorithms],
        ...(issuer === undefined ? {} : { issuer }),
        ...(audience === undefined ? {} : { audience }),
        ...(type === undefined ? {} : { typ: type }),
        requiredClaims: ['exp'],
        clockTolerance: skewSeconds,
        currentDate: new Date(nowMs),
      })
      return isSound(payload) ? { claims: payload } : { fault: 'invalid' }
    } catch (error) {
      return { fault: error instanceof errors.JWKSNoMatchingKey ? 'unknown-key' : 'invalid' }
    }
  }
}

/** What the library's types promise and its checks do not. */
function isSound({ sub, exp }: { readonly sub?: unknown; readonly exp?: unknown }): boolean {
  return (sub === undefined || typeof sub === 'string') && Number.isFinite(exp)
}

// The decoder behind passes over spaces; RFC 7515, 2: "without the addition of any line breaks, whitespace, or other
// additional characters".
const compactShape = /^[\w-]+\.[\w-]+\.[\w-]*$/

export function hasJwtShape(token: string): boolean {
  return token.length <= tokenLengthMax && compactShape.test(token)
}

/** What the header says of itself; nothing of it is proved. */
export function readJwtType(token: string): string | undefined {
  if (!hasJwtShape(token)) return undefined
  try {
    return decodeProtectedHeader(token).typ
  } catch {
    return undefined
  }
}

/** What a token says of itself; nothing of it is proved. */
export function readUnprovedClaims(token: string): Claims | undefined {
  if (!hasJwtShape(token)) return undefined
  try {
    return decodeJwt(token)
  } catch {
    return undefined
  }
}

const signingAlgorithm = 'EdDSA'

/** The algorithm of the keys that are made here. */
export const ownAlgorithms: readonly string[] = [signingAlgorithm]

export async function generateSigningJwk(): Promise<Jwk> {
  const { privateKey } = await generateKeyPair(signingAlgorithm, { extractable: true })
  return { ...(await exportJWK(privateKey)) }
}

/** The public half, as others get to see it. */
export function toPublicJwk({ kty, crv, x }: Jwk, kid: string): Jwk {
  return { kty, crv, x, kid, alg: signingAlgorithm, use: 'sig' }
}

export async function signJwt(
  claims: Claims,
  { kid, privateJwk, type }: { readonly kid: string; readonly privateJwk: Jwk; readonly type: string },
): Promise<string> {
  const key = await importJWK({ ...privateJwk }, signingAlgorithm)
  return new SignJWT(claims).setProtectedHeader({ alg: signingAlgorithm, kid, typ: type }).sign(key)
}

/** Whether the token says so itself. Who issued it may have another clock than we, by as much as `skewMs`. */
export function isExpiredJwt(token: string, nowMs: number, skewMs: number): boolean {
  // Nothing is proved here, not even that it is a number.
  const end: unknown = readUnprovedClaims(token)?.exp
  return typeof end === 'number' && end * 1000 + skewMs <= nowMs
}
