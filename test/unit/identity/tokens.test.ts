import { beforeAll, describe, expect, test } from 'bun:test'
import type { JWTPayload } from 'jose'
import { KeyRing } from '../../../src/identity/key-ring.ts'
import { ScopedTokens } from '../../../src/identity/scoped-tokens.ts'
import { isOver, Tokens, tokenLifetimeSeconds } from '../../../src/identity/tokens.ts'
import { type Claims, signJwt } from '../../../src/lib/jwt.ts'
import { forgedTokens } from '../../support/identity/forged-tokens.ts'
import { MemorySigningKeys, MovingClock } from '../../support/identity/memory-signing-keys.ts'
import { user } from '../../support/identity/memory-users.ts'

const now = 1_800_000_000_000

async function openTokens() {
  const [keeper, clock] = [new MemorySigningKeys(), new MovingClock(now)]
  const ring = await KeyRing.open(keeper, clock, 0)
  return { keeper, clock, ring, tokens: new Tokens(ring, clock) }
}

let opened: Awaited<ReturnType<typeof openTokens>>

beforeAll(async () => {
  opened = await openTokens()
})

function decode(part: string | undefined): Record<string, unknown> {
  return JSON.parse(Buffer.from(part ?? '', 'base64url').toString())
}

function encode(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

describe('a token of ours', () => {
  test('holds the user, the account and the end', async () => {
    const token = await opened.tokens.issue(user({ tokenEpoch: 3 }))
    const [header, payload] = token.split('.').map((part, index) => (index < 2 ? decode(part) : {}))

    expect(header).toEqual({ alg: 'EdDSA', typ: 'JWT', kid: opened.ring.signing().kid })
    expect(payload).toEqual({
      iss: 'berth',
      aud: 'berth',
      sub: 'ann',
      scope: 'acme',
      roles: ['writer'],
      epoch: 3,
      iat: now / 1000,
      exp: now / 1000 + 86_400,
    })
    expect(tokenLifetimeSeconds).toBe(86_400)
  })

  test('lives no longer for being issued late in a second', async () => {
    const { tokens, clock } = await openTokens()
    clock.at += 999

    const verified = await tokens.verify(await tokens.issue(user()))

    expect(verified?.expiresAt).toBe(now + tokenLifetimeSeconds * 1000)
  })
})

describe('a token’s own words', () => {
  const saying = (claims: unknown) => `${encode({ alg: 'EdDSA' })}.${encode(claims)}.AAAA`
  const seconds = now / 1000

  test.each([
    ['one of ours has ended', { iss: 'berth', exp: seconds }, true],
    ['one of ours ends later', { iss: 'berth', exp: seconds + 1 }, false],
    ['one of others has ended just now', { iss: 'others', exp: seconds }, false],
    ['one of others has ended a minute ago', { iss: 'others', exp: seconds - 60 }, true],
    ['there is no end', { iss: 'berth' }, false],
    ['the end is null', { iss: 'berth', exp: null }, false],
    ['the end is a text', { iss: 'berth', exp: '1' }, false],
    ['the end is a list', { iss: 'berth', exp: [1] }, false],
    ['there are no claims', null, false],
  ])('may say that %s', (_, claims, isSo) => {
    expect(isOver(saying(claims), now)).toBe(isSo)
  })
})

describe('a token that was tampered with', () => {
  test('in any of its parts is refused', async () => {
    const token = await opened.tokens.issue(user())
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
      expect([forged, await opened.tokens.verify(forged)]).toEqual([forged, undefined])
    }
  })

  test('is refused after each known manipulation, whatever its header names (CVE-2025-24976)', async () => {
    const token = await opened.tokens.issue(user())
    const [publicJwk = {}] = await opened.ring.publicKeys()
    const forged = Object.entries(await forgedTokens(token, publicJwk))

    expect(forged.length).toBeGreaterThan(30)
    for (const [what, text] of forged) expect([what, await opened.tokens.verify(text)]).toEqual([what, undefined])
    expect((await opened.tokens.verify(token))?.userName).toBe('ann')
  })
})

describe('a token signed by our key, but not as we do it', () => {
  const claims = (rest: JWTPayload = {}): Claims => ({
    iss: 'berth',
    aud: 'berth',
    sub: 'ann',
    epoch: 0,
    exp: now / 1000 + 60,
    ...rest,
  })
  const sign = (payload: Claims, type = 'JWT') => signJwt(payload, { ...opened.ring.signing(), type })
  const without = (name: string) => Object.fromEntries(Object.entries(claims()).filter(([key]) => key !== name))

  test('is good when its claims are (the control of the tests below)', async () => {
    expect((await opened.tokens.verify(await sign(claims())))?.userName).toBe('ann')
  })

  test.each(['iss', 'aud', 'sub', 'epoch', 'exp'])('is refused without %s', async (name) => {
    expect(await opened.tokens.verify(await sign(without(name)))).toBeUndefined()
  })

  test.each([
    { iss: 'somebody' },
    { aud: 'berth-registry' },
    { aud: [] },
    { sub: 7 },
    { sub: null },
    { sub: ['ann'] },
    { epoch: '0' },
    { epoch: null },
    { exp: now / 1000 },
    { exp: now / 1000 - 1 },
    { exp: `${now / 1000 + 60}` },
    { exp: null },
    { exp: [now / 1000 + 60] },
    { nbf: now / 1000 + 60 },
    { nbf: 'now' },
    { iat: 'now' },
  ])('is refused with %j', async (rest) => {
    expect(await opened.tokens.verify(await sign(claims(rest as unknown as JWTPayload)))).toBeUndefined()
  })

  test('ends when it says, to the fraction', async () => {
    const { tokens, clock, ring } = await openTokens()
    const token = await signJwt(claims({ exp: now / 1000 + 0.5 }), { ...ring.signing(), type: 'JWT' })

    expect((await tokens.verify(token))?.expiresAt).toBe(now + 500)
    clock.at += 1_000
    expect(await tokens.verify(token)).toBeUndefined()
  })

  test.each(['jwt', 'application/jwt', 'at+jwt', 'berth-scoped+jwt', 'JWT ', ''])(
    'is refused when it calls itself %j',
    async (type) => {
      expect(await opened.tokens.verify(await sign(claims(), type))).toBeUndefined()
    },
  )

  test('is refused unread when it is longer than any of ours', async () => {
    expect(await opened.tokens.verify(await sign(claims({ padding: 'x'.repeat(8_192) })))).toBeUndefined()
    expect(await opened.tokens.verify(await sign(claims({ padding: 'x'.repeat(4_096) })))).toBeDefined()
  })
})

const bearer = (secret: string) => ({ kind: 'bearer', secret }) as const

describe('the two kinds of tokens that one key signs', () => {
  test('never stand in for each other, whatever either calls itself', async () => {
    const { tokens, ring, clock } = await openTokens()
    const scoped = new ScopedTokens(ring, clock, 900_000)
    const principal = { account: 'acme', subject: 'ann' }
    const scopedToken = await scoped.issue({ principal, access: [], catalog: 'all' }, now + 60_000)
    const ownToken = await tokens.issue(user())

    expect(await tokens.verify(scopedToken)).toBeUndefined()
    expect(await scoped.authenticate(bearer(ownToken))).toBeUndefined()
    for (const [token, other] of [
      [scopedToken, 'JWT'],
      [ownToken, 'berth-scoped+jwt'],
    ] as const) {
      const renamed = await signJwt(decode(token.split('.')[1]), { ...ring.signing(), type: other })
      expect([await tokens.verify(renamed), await scoped.authenticate(bearer(renamed))]).toEqual([undefined, undefined])
    }
    expect([await tokens.verify(ownToken), await scoped.authenticate(bearer(scopedToken))]).toMatchObject([
      { userName: 'ann' },
      { subject: 'ann' },
    ])
  })
})
