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

// JSON Web Tokens. Only this file uses the library.

export type Claims = JWTPayload
export type Jwk = Readonly<Record<string, unknown>>

/** What is required of a token, besides a valid signature. */
export interface JwtRules {
  /** The accepted algorithms. The header of the token does not decide. */
  readonly algorithms: readonly string[]
  readonly issuer?: string | undefined
  readonly audience?: string | undefined
  /** The `typ` of the header, which keeps kinds of tokens apart. */
  readonly type?: string | undefined
  readonly nowMs: number
  readonly skewSeconds?: number
}

/** The claims, or why the token is refused. */
export type Verdict = { readonly claims: Claims } | { readonly fault: 'unknown-key' | 'invalid' }

// Checked before the token is decoded.
const tokenLengthMax = 8_192

/** The public keys that verify tokens. Keys in a token (`jwk`, `jku`, `x5u`, `x5c`) are ignored. */
export class JwtKeys {
  readonly #find: ReturnType<typeof createLocalJWKSet>

  /** Throws if the keys are not valid. */
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

/** The types of the library promise this, but the library does not check it. */
function isSound({ sub, exp }: { readonly sub?: unknown; readonly exp?: unknown }): boolean {
  return (sub === undefined || typeof sub === 'string') && Number.isFinite(exp)
}

// The decoder of the library ignores spaces. RFC 7515, 2: "without the addition of any line breaks, whitespace, or
// other additional characters".
const compactShape = /^[\w-]+\.[\w-]+\.[\w-]*$/

export function hasJwtShape(token: string): boolean {
  return token.length <= tokenLengthMax && compactShape.test(token)
}

/** The `typ` of the header. The token is not verified. */
export function readJwtType(token: string): string | undefined {
  if (!hasJwtShape(token)) return undefined
  try {
    return decodeProtectedHeader(token).typ
  } catch {
    return undefined
  }
}

/** The claims of a token that is not verified. */
export function readUnprovedClaims(token: string): Claims | undefined {
  if (!hasJwtShape(token)) return undefined
  try {
    return decodeJwt(token)
  } catch {
    return undefined
  }
}

const signingAlgorithm = 'EdDSA'

/** The algorithm of the keys of this service. */
export const ownAlgorithms: readonly string[] = [signingAlgorithm]

export async function generateSigningJwk(): Promise<Jwk> {
  const { privateKey } = await generateKeyPair(signingAlgorithm, { extractable: true })
  return { ...(await exportJWK(privateKey)) }
}

/** The public half of a key, to be published. */
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

/** Whether the token says that it has expired. The token is not verified. The issuer's clock may differ by `skewMs`. */
export function isExpiredJwt(token: string, nowMs: number, skewMs: number): boolean {
  // In a token that is not verified, this may be anything.
  const end: unknown = readUnprovedClaims(token)?.exp
  return typeof end === 'number' && end * 1000 + skewMs <= nowMs
}
