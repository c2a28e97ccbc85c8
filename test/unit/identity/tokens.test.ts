import { beforeAll, describe, expect, test } from 'bun:test'
import { createPublicKey } from 'node:crypto'
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose'
import { Tokens, tokenLifetimeSeconds } from '../../../src/identity/tokens.ts'
import type { SigningKey, SigningKeys } from '../../../src/ports/signing-keys.ts'
import { user } from '../../support/memory-users.ts'

const now = 1_800_000_000_000

/** Keeps the key in memory, and counts how often one was made. */
class MemoryKeys implements SigningKeys {
  kept: SigningKey | undefined
  made = 0

  async current(generate: () => Promise<SigningKey>): Promise<SigningKey> {
    if (this.kept === undefined) {
      this.made += 1
      this.kept = await generate()
    }
    return this.kept
  }
}

const keys = new MemoryKeys()
let tokens: Tokens

beforeAll(async () => {
  tokens = await Tokens.open(keys)
})

function decode(part: string | undefined): Record<string, unknown> {
  return JSON.parse(Buffer.from(part ?? '', 'base64url').toString())
}

function encode(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

const claims = (rest: JWTPayload = {}): JWTPayload => ({ iss: 'berth', sub: 'ann', exp: now / 1000 + 60, ...rest })

describe('a token of ours', () => {
  test('says who, whose account, and until when', async () => {
    const token = await tokens.issue(user(), now)
    const [header, payload] = token.split('.').map((part, index) => (index < 2 ? decode(part) : {}))

    expect(header).toMatchObject({ alg: 'EdDSA', kid: keys.kept?.kid ?? '' })
    expect(payload).toMatchObject({ sub: 'ann', scope: 'acme', roles: ['writer'], iat: now / 1000 })
    expect(payload?.['exp']).toBe(now / 1000 + 86_400)
    expect(tokenLifetimeSeconds).toBe(86_400)
  })

  test('is good for a day, to the second', async () => {
    const token = await tokens.issue(user(), now)
    const end = now + tokenLifetimeSeconds * 1000

    expect(await tokens.verify(token, now)).toEqual({ userName: 'ann', expiresAt: end })
    expect(await tokens.verify(token, end - 1000)).toEqual({ userName: 'ann', expiresAt: end })
    expect(await tokens.verify(token, end)).toBeUndefined()
  })

  test('outlives a restart, for the key does', async () => {
    const token = await tokens.issue(user(), now)
    const reopened = await Tokens.open(keys)

    expect((await reopened.verify(token, now))?.userName).toBe('ann')
    expect(keys.made).toBe(1)
  })

  test('means nothing to another key', async () => {
    const others = await Tokens.open(new MemoryKeys())

    expect(await others.verify(await tokens.issue(user(), now), now)).toBeUndefined()
  })
})

describe('a token that was tampered with', () => {
  test('in any of its parts is refused', async () => {
    const token = await tokens.issue(user(), now)
    const [header = '', payload = '', signature = ''] = token.split('.')
    const admin = encode({ ...decode(payload), sub: 'admin' })
    const turned = signature.startsWith('A') ? `B${signature.slice(1)}` : `A${signature.slice(1)}`
    for (const forged of [
      `${header}.${admin}.${signature}`,
      `${header}.${payload}.${turned}`,
      `${header}.${payload}.`,
      `${header}.${payload}`,
      `${token}.`,
      `.${token}`,
      `${header}..${signature}`,
      '..',
      '',
      ' ',
      token.toUpperCase(),
    ]) {
      expect(await tokens.verify(forged, now)).toBeUndefined()
    }
  })

  test('by an algorithm of its own choice is refused', async () => {
    const privateJwk = keys.kept?.privateJwk ?? {}
    const { x } = privateJwk
    const publicPem = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: String(x) }, format: 'jwk' })
      .export({ type: 'spki', format: 'pem' })
      .toString()
    const kid = keys.kept?.kid ?? ''
    const signed = (secret: string) =>
      new SignJWT(claims()).setProtectedHeader({ alg: 'HS256', kid }).sign(new TextEncoder().encode(secret.padEnd(32)))
    const unsigned = ['none', 'None', 'NONE', '', undefined].map(
      (alg) => `${encode({ alg, kid, typ: 'JWT' })}.${encode(claims())}.`,
    )
    for (const forged of [await signed(publicPem), await signed(String(x)), await signed(kid), ...unsigned]) {
      expect(await tokens.verify(forged, now)).toBeUndefined()
    }
  })

  test("by a key of the sender's is refused, whatever the header names (CVE-2025-24976)", async () => {
    const { privateKey, publicKey } = await generateKeyPair('EdDSA')
    const jwk = await exportJWK(publicKey)
    const kid = keys.kept?.kid ?? ''
    const url = 'http://127.0.0.1:1/keys'
    for (const extra of [
      {},
      { jwk },
      { jku: url },
      { x5u: url },
      { x5c: ['AAAA'] },
      { crit: ['exp'] },
      { kid: '../k' },
    ]) {
      const forged = await new SignJWT(claims())
        .setProtectedHeader({ alg: 'EdDSA', kid, ...extra })
        .sign(privateKey)
        .catch(() => `${encode({ alg: 'EdDSA', kid, ...extra })}.${encode(claims())}.AAAA`)
      expect(await tokens.verify(forged, now)).toBeUndefined()
    }
  })
})

describe('a token signed by our key, but not as we do it', () => {
  const sign = async (payload: JWTPayload) => {
    const { importJWK } = await import('jose')
    const key = await importJWK(keys.kept?.privateJwk ?? {}, 'EdDSA')
    return new SignJWT(payload).setProtectedHeader({ alg: 'EdDSA' }).sign(key)
  }
  const without = (name: 'iss' | 'sub' | 'exp') => {
    const { [name]: _left, ...rest } = claims()
    return rest
  }

  test('is good when its claims are (the control of the tests below)', async () => {
    expect((await tokens.verify(await sign(claims()), now))?.userName).toBe('ann')
  })

  test('is refused without issuer, subject or end, before its time, and after it', async () => {
    for (const payload of [
      claims({ iss: 'somebody' }),
      without('iss'),
      without('sub'),
      without('exp'),
      claims({ exp: now / 1000 - 1 }),
      claims({ nbf: now / 1000 + 60 }),
    ]) {
      expect(await tokens.verify(await sign(payload), now)).toBeUndefined()
    }
  })

  test('is refused unread when it is longer than any of ours', async () => {
    expect(await tokens.verify(await sign(claims({ padding: 'x'.repeat(8_192) })), now)).toBeUndefined()
  })
})
