import { exportJWK, generateKeyPair, importJWK, type JWK, type JWTPayload, jwtVerify, SignJWT } from 'jose'
import type { SigningKey, SigningKeys } from '../ports/signing-keys.ts'
import type { User } from '../ports/user-store.ts'

/** spec.md, "Obtaining a bearer token": the token lifetime is 86400 seconds. */
export const tokenLifetimeSeconds = 86_400

const issuer = 'berth'
const algorithm = 'EdDSA'

// A token of ours is under 1 KiB. The bound is checked before anything is decoded.
const tokenLengthMax = 8_192

export interface TokenClaims {
  readonly userName: string
  readonly expiresAt: number
}

type Key = Awaited<ReturnType<typeof importJWK>>

/** Signs and checks the tokens of the embedded identity service, with one key that outlives restarts. */
export class Tokens {
  readonly #kid: string
  readonly #privateKey: Key
  readonly #publicKey: Key

  private constructor(kid: string, privateKey: Key, publicKey: Key) {
    this.#kid = kid
    this.#privateKey = privateKey
    this.#publicKey = publicKey
  }

  static async open(keys: SigningKeys): Promise<Tokens> {
    const { kid, privateJwk } = await keys.current(generateKey)
    const { d: _private, ...publicJwk } = privateJwk as JWK
    return new Tokens(kid, await importJWK(privateJwk as JWK, algorithm), await importJWK(publicJwk, algorithm))
  }

  issue(user: User, nowMs: number): Promise<string> {
    const now = Math.floor(nowMs / 1000)
    return new SignJWT({ scope: user.account, roles: user.roles } satisfies JWTPayload)
      .setProtectedHeader({ alg: algorithm, kid: this.#kid, typ: 'JWT' })
      .setIssuer(issuer)
      .setSubject(user.name)
      .setIssuedAt(now)
      .setExpirationTime(now + tokenLifetimeSeconds)
      .sign(this.#privateKey)
  }

  /** The claims of a token that we signed and that is still good. Only our key counts, whatever the header names. */
  async verify(token: string, nowMs: number): Promise<TokenClaims | undefined> {
    if (token.length > tokenLengthMax || token.split('.').length !== 3) return undefined
    try {
      const { payload } = await jwtVerify(token, this.#publicKey, {
        algorithms: [algorithm],
        issuer,
        currentDate: new Date(nowMs),
      })
      if (payload.sub === undefined || payload.exp === undefined) return undefined
      return { userName: payload.sub, expiresAt: payload.exp * 1000 }
    } catch {
      // Every way of being wrong is the same to the caller.
      return undefined
    }
  }
}

async function generateKey(): Promise<SigningKey> {
  const { privateKey } = await generateKeyPair(algorithm, { extractable: true })
  return { kid: crypto.randomUUID(), privateJwk: { ...(await exportJWK(privateKey)) } }
}
