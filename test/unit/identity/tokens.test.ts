// Login tokens and scoped tokens, which the same keys sign. Forged and spoiled tokens: test/contract/identity.test.ts and
// test/fuzz/jwt.test.ts.
import { describe, expect, test } from 'bun:test'
import { KeyRing } from '../../../src/identity/key-ring.ts'
import {
  isScopedToken,
  type ScopedGrant,
  type ScopedToken,
  ScopedTokens,
  trimToken,
} from '../../../src/identity/scoped-tokens.ts'
import { isOver, Tokens, tokenLifetimeSeconds } from '../../../src/identity/tokens.ts'
import { type Claims, signJwt } from '../../../src/lib/jwt.ts'
import { MemorySigningKeys, MovingClock } from '../../support/identity/memory-signing-keys.ts'
import { user } from '../../support/identity/memory-users.ts'

const now = 1_800_000_000_000
const end = now + 60_000
const clock = new MovingClock(now)
const ring = await KeyRing.open(new MemorySigningKeys(), clock, 0)
const logins = new Tokens(ring, clock)
const scoped = new ScopedTokens(ring, clock, 900_000)
const ann = { account: 'acme', subject: 'ann' } as const
const app: ScopedGrant = { repository: 'team/app', rights: ['pull', 'push'] }

const issueScoped = (more: Partial<ScopedToken> = {}) =>
  scoped.issue({ principal: ann, access: [app], catalog: undefined, ...more }, end)
const verifyScoped = (secret: string) => scoped.authenticate({ kind: 'bearer', secret })

function decode(part = ''): Record<string, unknown> {
  return JSON.parse(Buffer.from(part, 'base64url').toString())
}

function encode(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

/** A token with any claims, signed by the current key. */
function sign(claims: Record<string, unknown>, type: string): Promise<string> {
  return signJwt(claims as Claims, { ...ring.signing(), type })
}

const goodLogin = { iss: 'berth', aud: 'berth', sub: 'ann', epoch: 0, exp: end / 1000 }
const goodScoped = { iss: 'berth', aud: 'berth-registry', sub: 'ann', scope: 'acme', access: [], exp: end / 1000 }
const signLogin = (claims: object, type = 'JWT') => sign({ ...goodLogin, ...claims }, type)
const signScoped = (claims: object, type = 'berth-scoped+jwt') => sign({ ...goodScoped, ...claims }, type)

/** Which of the two services accepts the token. */
async function acceptedBy(token: string): Promise<string> {
  const [login, scope] = [await logins.verify(token), await verifyScoped(token)]
  return [login && 'logins', scope && 'scoped'].filter(Boolean).join()
}

async function at<T>(time: number, act: () => Promise<T>): Promise<T> {
  clock.at = time
  return act().finally(() => {
    clock.at = now
  })
}

describe('a login token', () => {
  test('contains the user, the account and the end, and does not live longer if it is issued late in a second', async () => {
    const token = await at(now + 999, () => logins.issue(user({ tokenEpoch: 3 })))
    const [header, payload] = token.split('.')

    expect(decode(header)).toEqual({ alg: 'EdDSA', typ: 'JWT', kid: ring.signing().kid })
    expect(decode(payload)).toEqual({
      iss: 'berth',
      aud: 'berth',
      sub: 'ann',
      scope: 'acme',
      roles: ['writer'],
      epoch: 3,
      iat: now / 1000,
      exp: now / 1000 + 86_400,
    })
    expect((await logins.verify(token))?.expiresAt).toBe(now + tokenLifetimeSeconds * 1000)
  })

  const saying = (claims: unknown) => `${encode({ alg: 'EdDSA' })}.${encode(claims)}.AAAA`
  const seconds = now / 1000
  test.each([
    [true, { iss: 'berth', exp: seconds }],
    [false, { iss: 'berth', exp: seconds + 1 }],
    // The clock of another issuer may differ by a minute.
    [false, { iss: 'others', exp: seconds }],
    [true, { iss: 'others', exp: seconds - 60 }],
    [false, { iss: 'berth' }],
    [false, { iss: 'berth', exp: null }],
    [false, { iss: 'berth', exp: '1' }],
    [false, { iss: 'berth', exp: [1] }],
    [false, null],
  ])('is over: %p, if it says %j', (isSo, claims) => {
    expect(isOver(saying(claims), now)).toBe(isSo)
  })
})

describe('a scoped token', () => {
  test('becomes a principal with no more rights than it was issued for', async () => {
    expect(await verifyScoped(await issueScoped())).toEqual({
      account: 'acme',
      subject: 'ann',
      roles: [],
      grants: [{ rights: new Set(['pull', 'push']), repositories: ['team/app' as never] }],
      fingerprint: expect.any(String),
      expiresAt: end,
      kind: 'scoped',
      catalog: 'none',
    })
    const anonymous = { account: 'acme', subject: 'anonymous', kind: 'anonymous' } as const
    expect((await verifyScoped(await issueScoped({ principal: anonymous })))?.kind).toBe('anonymous')
  })

  test('has its access in the form of the token specification', async () => {
    expect(decode((await issueScoped()).split('.')[1])['access']).toEqual([
      { type: 'repository', name: 'team/app', actions: ['pull', 'push'] },
    ])
  })

  test.each([['all'], [['team/*']], [[]]] as const)('shows the catalog for which it was issued: %j', async (given) => {
    const catalog = given as ScopedToken['catalog']
    const principal = await verifyScoped(await issueScoped({ access: [], catalog }))

    expect([principal?.catalog, principal?.grants]).toEqual([
      catalog,
      [{ rights: new Set(['pull']), repositories: [] }],
    ])
  })

  test.each(['operate', 'admin', '*', 1, null])('gives no right %j, whoever signed it', async (action) => {
    const token = await signScoped({ access: [{ type: 'repository', name: 'app', actions: ['pull', action] }] })

    expect((await verifyScoped(token))?.grants).toEqual([{ rights: new Set(['pull']), repositories: ['app' as never] }])
  })

  test.each(['*', 'team/*', 'APP', '', 7])('gives no right over the repository %j', async (name) => {
    expect((await verifyScoped(await signScoped({ access: [{ name, actions: ['pull'] }] })))?.grants).toEqual([])
  })
})

describe('a token of the current key', () => {
  test('is accepted with good claims, by its own service only (control)', async () => {
    expect([await acceptedBy(await signLogin({})), await acceptedBy(await signScoped({}))]).toEqual([
      'logins',
      'scoped',
    ])
  })

  const both = [
    ...[{ iss: undefined }, { iss: 'somebody' }, { aud: undefined }, { aud: [] }, { sub: undefined }, { sub: 7 }],
    ...[{ sub: null }, { sub: ['ann'] }, { exp: undefined }, { exp: null }, { exp: now / 1000 }, { exp: '9999999999' }],
  ]
  test.each([
    ...both.map((claims) => [claims, signLogin] as const),
    ...both.map((claims) => [claims, signScoped] as const),
    ...[{ epoch: undefined }, { epoch: '0' }, { epoch: null }].map((claims) => [claims, signLogin] as const),
    ...[{ scope: undefined }, { scope: ['acme'] }].map((claims) => [claims, signScoped] as const),
    // The audience of the other kind.
    [{ aud: 'berth-registry' }, signLogin],
    [{ aud: 'berth' }, signScoped],
  ])('is refused with %j', async (claims, signWith) => {
    expect(await acceptedBy(await signWith(claims))).toBe('')
  })

  test.each(['jwt', 'application/jwt', 'at+jwt', 'JWT ', '', 'berth-scoped+jwt'])(
    'is not a login token if its type is %j',
    async (type) => expect(await acceptedBy(await signLogin({}, type))).toBe(''),
  )

  test.each(['JWT', 'at+jwt', ''])('is not a scoped token if its type is %j', async (type) =>
    expect(await acceptedBy(await signScoped({}, type))).toBe(''),
  )

  test('expires exactly when it says', async () => {
    const tokens = [await signLogin({ exp: now / 1000 + 0.5 }), await issueScoped()]
    const accepted = (time: number) => at(time, () => Promise.all(tokens.map(acceptedBy)))

    expect((await logins.verify(tokens[0] ?? ''))?.expiresAt).toBe(now + 500)
    expect(await accepted(now)).toEqual(['logins', 'scoped'])
    expect(await accepted(now + 1_000)).toEqual(['', 'scoped'])
    expect(await accepted(end - 1_000)).toEqual(['', 'scoped'])
    expect(await accepted(end)).toEqual(['', ''])
  })

  test('is refused without being parsed if it is longer than any token that Berth issues', async () => {
    expect(await acceptedBy(await signLogin({ padding: 'x'.repeat(8_192) }))).toBe('')
    expect(await acceptedBy(await signLogin({ padding: 'x'.repeat(4_096) }))).toBe('logins')
  })
})

describe('a scoped token that is to contain much', () => {
  const names = Array.from({ length: 64 }, (_, number) => `team/${'x'.repeat(100)}${number}`)
  const access = names.map((repository): ScopedGrant => ({ ...app, repository }))
  const few: ScopedToken = {
    principal: ann,
    access: [app],
    catalog: names.slice(0, 10).map((name) => `${name}/*` as never),
  }

  test('contains the first grants, and is short enough to be used', async () => {
    const trimmed = trimToken({
      principal: { account: 'a'.repeat(128), subject: 's'.repeat(128) },
      access,
      catalog: undefined,
    })
    const verified = await verifyScoped(await scoped.issue(trimmed, end))

    expect(trimmed.access.length).toBeGreaterThan(15)
    expect(trimmed.access).toEqual(access.slice(0, trimmed.access.length))
    expect(verified?.grants).toHaveLength(trimmed.access.length)
    // The control: untrimmed, it would be refused.
    expect(await acceptedBy(await issueScoped({ access }))).toBe('')
  })

  test('contains the whole catalog or none of it, and everything if it is little', () => {
    expect(trimToken({ ...few, catalog: 'all' })).toEqual({ ...few, catalog: 'all' })
    expect(trimToken(few)).toEqual(few)
    const catalog = names.map((name) => `${name}/*` as never)
    expect(trimToken({ ...few, catalog })).toEqual({ ...few, catalog: undefined })
  })
})

test('a credential counts as a scoped token by the type that it names, valid or not', async () => {
  const token = await issueScoped()
  const kinds = [token, `${token}x`, await logins.issue(user()), await signScoped({}, 'at+jwt'), 'opaque'].map(
    (secret) => isScopedToken({ kind: 'bearer', secret }),
  )

  expect([...kinds, isScopedToken({ kind: 'api-key', secret: token })]).toEqual([
    true,
    true,
    false,
    false,
    false,
    false,
  ])
})
