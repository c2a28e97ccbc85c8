import { beforeAll, describe, expect, test } from 'bun:test'
import { exportJWK, generateKeyPair, importJWK, SignJWT } from 'jose'
import {
  generateSigningJwk,
  hasJwtShape,
  type Jwk,
  JwtKeys,
  type JwtRules,
  ownAlgorithms,
  readJwtType,
  readUnprovedClaims,
  signJwt,
  toPublicJwk,
} from '../../../src/lib/jwt.ts'

const nowMs = 1_800_000_000_000
const now = nowMs / 1000
const rules: JwtRules = { algorithms: ownAlgorithms, nowMs }
const good = { sub: 'ann', exp: now + 60 }

let privateJwk: Jwk
let other: Jwk

beforeAll(async () => {
  ;[privateJwk, other] = [await generateSigningJwk(), await generateSigningJwk()]
})

const sign = (claims: Record<string, unknown> = good, kid = 'one', key = privateJwk) =>
  signJwt(claims, { kid, privateJwk: key, type: 'JWT' })
const keys = () => new JwtKeys([toPublicJwk(privateJwk, 'one'), toPublicJwk(other, 'other')])

async function verdictOn(token: string, more: Partial<JwtRules> = {}, by = keys()): Promise<string> {
  const verdict = await by.verify(token, { ...rules, ...more })
  return 'claims' in verdict ? 'good' : verdict.fault
}

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')

describe('a token', () => {
  test('is checked with the key that it names', async () => {
    expect(await keys().verify(await sign(), rules)).toEqual({ claims: good })
    expect(await verdictOn(await sign(good, 'other', other))).toBe('good')
    expect(await verdictOn(await sign(good, 'other'))).toBe('invalid')
  })

  test('of a key that is not known is told apart from one that is wrong', async () => {
    expect(await verdictOn(await sign(good, 'third'))).toBe('unknown-key')
    expect(await verdictOn(await sign(), {}, new JwtKeys([]))).toBe('unknown-key')
    expect(await verdictOn(await sign({ ...good, exp: now - 1 }))).toBe('invalid')
    expect(await verdictOn('a.b.c')).toBe('invalid')
  })

  test('that names no key is good by the one key that there is, and by none of several', async () => {
    const key = await importJWK({ ...privateJwk }, 'EdDSA')
    const nameless = await new SignJWT(good).setProtectedHeader({ alg: 'EdDSA' }).sign(key)

    expect(await verdictOn(nameless, {}, new JwtKeys([toPublicJwk(privateJwk, 'one')]))).toBe('good')
    expect(await verdictOn(nameless)).toBe('invalid')
  })

  // Issuers and audiences: test/unit/adapters/identity-remote/local-tokens.test.ts.
  test.each([
    ['JWT', 'good'],
    ['at+jwt', 'invalid'],
  ])('where tokens have the type %s is %s', async (type, expected) => {
    expect(await verdictOn(await sign(), { type })).toBe(expected)
  })

  test.each<[string, object, number, string]>([
    ['ends later', { exp: now + 1 }, 0, 'good'],
    ['ends now', { exp: now }, 0, 'invalid'],
    ['ended as long ago as clocks differ', { exp: now - 30 }, 30, 'invalid'],
    ['ended less long ago than clocks differ', { exp: now - 29 }, 30, 'good'],
    ['begins now', { exp: now + 60, nbf: now }, 0, 'good'],
    ['begins later', { exp: now + 60, nbf: now + 1 }, 0, 'invalid'],
    ['begins later than clocks differ', { exp: now + 60, nbf: now + 31 }, 30, 'invalid'],
    ['begins sooner than clocks differ', { exp: now + 60, nbf: now + 30 }, 30, 'good'],
    ['has no end', {}, 0, 'invalid'],
  ])('that %s', async (_, claims, skewSeconds, expected) => {
    expect(await verdictOn(await sign({ sub: 'ann', ...claims }), { skewSeconds })).toBe(expected)
  })

  test.each([
    { exp: `${now + 60}` },
    { exp: null },
    { exp: true },
    { exp: { valueOf: now + 60 } },
    { exp: [now + 60] },
    { nbf: '0' },
    { iat: 'yesterday' },
    { sub: 7 },
    { sub: null },
    { sub: ['ann'] },
    { sub: { name: 'ann' } },
  ])('with %j is not what it says it is', async (claims) => {
    expect(await verdictOn(await sign({ ...good, ...claims }))).toBe('invalid')
  })

  test.each(['{"exp":1e999}', 'null', '[]', '"text"', '1', '{', ''])(
    'whose claims are %j is invalid',
    async (claims) => {
      const key = await importJWK({ ...privateJwk }, 'EdDSA')
      const header = encode({ alg: 'EdDSA', kid: 'one', typ: 'JWT' })
      const signed = `${header}.${Buffer.from(claims).toString('base64url')}`
      const signature = await crypto.subtle.sign('Ed25519', key as CryptoKey, Buffer.from(signed))

      expect(await verdictOn(`${signed}.${Buffer.from(signature).toString('base64url')}`)).toBe('invalid')
    },
  )
})

describe('the algorithm', () => {
  test('is one of those that count, whatever the token says and the keys could', async () => {
    const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true })
    const token = await new SignJWT(good).setProtectedHeader({ alg: 'ES256', kid: 'ec' }).sign(privateKey)
    const set = new JwtKeys([{ ...(await exportJWK(publicKey)), kid: 'ec' }])

    expect(await verdictOn(token, { algorithms: ['ES256'] }, set)).toBe('good')
    expect(await verdictOn(token, {}, set)).toBe('invalid')
    expect(await verdictOn(token, { algorithms: [] }, set)).toBe('invalid')
  })

  test('cannot be one of a shared secret, though it be allowed and the secret be among the keys', async () => {
    const secret = crypto.getRandomValues(new Uint8Array(32))
    const token = await new SignJWT(good).setProtectedHeader({ alg: 'HS256', kid: 'mac' }).sign(secret)
    const k = Buffer.from(secret).toString('base64url')
    const set = new JwtKeys([{ kty: 'oct', k, kid: 'mac' }, toPublicJwk(privateJwk, 'one')])

    expect(await verdictOn(token, { algorithms: ['HS256', 'EdDSA'] }, set)).toBe('invalid')
  })

  test('of a key that is for something else does not count', async () => {
    const token = await sign()
    const key = toPublicJwk(privateJwk, 'one')

    expect(await verdictOn(token, {}, new JwtKeys([{ ...key, use: 'enc' }]))).toBe('unknown-key')
    expect(await verdictOn(token, {}, new JwtKeys([{ ...key, alg: 'ES256' }]))).toBe('unknown-key')
    expect(await verdictOn(token, {}, new JwtKeys([key]))).toBe('good')
  })
})

describe('a set of keys', () => {
  test.each([[null], [['key']], [{}]])('that is none (%j) is refused at once', (set) => {
    expect(() => new JwtKeys(set as unknown as Jwk[])).toThrow()
  })

  test('may hold keys that cannot be read: the others count', async () => {
    const set = new JwtKeys([
      {},
      { kty: 'XYZ' },
      { kty: 'OKP', crv: 'Ed25519', kid: 'bad' },
      toPublicJwk(privateJwk, 'one'),
    ])

    expect(await verdictOn(await sign(), {}, set)).toBe('good')
    expect(await verdictOn(await sign(good, 'bad'), {}, set)).toBe('invalid')
  })

  test('that holds a private key checks nothing with it', async () => {
    expect(await verdictOn(await sign(), {}, new JwtKeys([{ ...privateJwk, kid: 'one' }]))).toBe('invalid')
  })
})

test('each new key is another one, and is published without its secret', async () => {
  expect(privateJwk['d']).not.toBe(other['d'])
  const published = toPublicJwk({ ...privateJwk, more: 'x', p: 'y' }, 'one')
  expect(published).toEqual({ kty: 'OKP', crv: 'Ed25519', x: privateJwk['x'], kid: 'one', alg: 'EdDSA', use: 'sig' })
})

describe('what a token says of itself, unproved', () => {
  test('is its kind and its claims', async () => {
    const token = await sign()

    expect([readJwtType(token), readUnprovedClaims(token)]).toEqual(['JWT', good])
  })

  test.each(['', '.', '..', 'a.b', 'a.b.c.d', 'a.b.c', '%.%.%', 'e30.e30', 'W10.W10.', 'bnVsbA.bnVsbA.x'])(
    'is nothing where it is none: %j',
    (token) => {
      expect([readJwtType(token), readUnprovedClaims(token)]).toEqual([undefined, undefined])
    },
  )

  test('is not read where it is too long to be one', async () => {
    const long = await sign({ ...good, padding: 'x'.repeat(8_192) })

    expect([hasJwtShape(long), readJwtType(long), readUnprovedClaims(long)]).toEqual([false, undefined, undefined])
    expect(hasJwtShape(`${'a'.repeat(8_188)}.b.c`)).toBe(true)
    expect(hasJwtShape(`${'a'.repeat(8_189)}.b.c`)).toBe(false)
  })
})
