import { describe, expect, test } from 'bun:test'
import { KeyRing } from '../../../src/identity/key-ring.ts'
import {
  isScopedToken,
  type ScopedGrant,
  type ScopedToken,
  ScopedTokens,
  trimToken,
} from '../../../src/identity/scoped-tokens.ts'
import { Tokens } from '../../../src/identity/tokens.ts'
import { signJwt } from '../../../src/lib/jwt.ts'
import type { RepositoryPattern } from '../../../src/oci/repository-pattern.ts'
import type { Principal } from '../../../src/ports/identity.ts'
import { MemorySigningKeys } from '../../support/identity/memory-signing-keys.ts'
import { user } from '../../support/identity/memory-users.ts'

const clock = { now: () => now, freshId: () => crypto.randomUUID() }
let now = 1_800_000_000_000
const end = now + 60_000

const ring = await KeyRing.open(new MemorySigningKeys(), clock, 0)
const tokens = new ScopedTokens(ring, clock, 900_000)
const ann = { account: 'acme', subject: 'ann' } as const
const app: ScopedGrant = { repository: 'team/app', rights: ['pull', 'push'] }

function issue(more: Partial<ScopedToken> = {}, expiresAt = end): Promise<string> {
  return tokens.issue({ principal: ann, access: [app], catalog: undefined, ...more }, expiresAt)
}

function verify(token: string): Promise<Principal | undefined> {
  return tokens.authenticate({ kind: 'bearer', secret: token })
}

function payloadOf(token: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
}

/** A token with any claims, signed by the very key that counts. */
function signed(claims: Record<string, unknown>, type = 'berth-scoped+jwt'): Promise<string> {
  const good = { iss: 'berth', aud: 'berth-registry', sub: 'ann', scope: 'acme', access: [], exp: end / 1000 }
  return signJwt({ ...good, ...claims }, { ...ring.signing(), type })
}

describe('a scoped token', () => {
  test('becomes a principal with no more rights than it was issued for', async () => {
    expect(await verify(await issue())).toEqual({
      account: 'acme',
      subject: 'ann',
      roles: [],
      grants: [{ rights: new Set(['pull', 'push']), repositories: ['team/app' as RepositoryPattern] }],
      fingerprint: expect.any(String),
      expiresAt: end,
      kind: 'scoped',
      catalog: 'none',
    })
  })

  test('of an anonymous caller stays anonymous', async () => {
    const anonymous = { account: 'acme', subject: 'anonymous', kind: 'anonymous' } as const

    expect((await verify(await issue({ principal: anonymous })))?.kind).toBe('anonymous')
  })

  test.each([
    ['all', 'all'],
    [['team/*'], ['team/*']],
    [[], []],
  ] as const)('that shows the catalog %j says which of it', async (given, expected) => {
    const catalog = given as ScopedToken['catalog']
    const principal = await verify(await issue({ access: [], catalog }))

    expect(principal?.catalog as unknown).toEqual(expected)
    expect(principal?.grants).toEqual([{ rights: new Set(['pull']), repositories: [] }])
  })

  test('has its access in the form of the token specification', async () => {
    expect(payloadOf(await issue())['access']).toEqual([
      { type: 'repository', name: 'team/app', actions: ['pull', 'push'] },
    ])
  })

  test('is good until its end, to the second', async () => {
    const token = await issue()
    const verifyAt = async (at: number) => {
      const before = now
      now = at
      const principal = await verify(token)
      now = before
      return principal
    }

    expect(await verifyAt(end - 1_000)).toBeDefined()
    expect(await verifyAt(end)).toBeUndefined()
  })
})

describe('what a token of the right key cannot say', () => {
  test.each(['operate', 'admin', '*', 1, null])('the right %j', async (action) => {
    const token = await signed({ access: [{ type: 'repository', name: 'app', actions: ['pull', action] }] })

    expect((await verify(token))?.grants).toEqual([
      { rights: new Set(['pull']), repositories: ['app' as RepositoryPattern] },
    ])
  })

  test.each(['*', 'team/*', 'APP', '', 7])('the repository %j', async (name) => {
    expect((await verify(await signed({ access: [{ name, actions: ['pull'] }] })))?.grants).toEqual([])
  })

  test.each([
    ['no subject', { sub: undefined }],
    ['no account', { scope: undefined }],
    ['an account that is no text', { scope: ['acme'] }],
    ['no end', { exp: undefined }],
    ['another audience', { aud: 'berth' }],
    ['no audience', { aud: undefined }],
    ['another issuer', { iss: 'berth2' }],
  ])('%s', async (_, claims) => {
    expect(await verify(await signed({}))).toBeDefined()
    expect(await verify(await signed(claims))).toBeUndefined()
  })
})

describe('kinds of tokens do not stand in for each other', () => {
  const logins = new Tokens(ring, clock)

  test('a login token is no scoped token', async () => {
    expect(await verify(await logins.issue(user()))).toBeUndefined()
  })

  test('a scoped token is no login token', async () => {
    expect(await logins.verify(await issue())).toBeUndefined()
  })

  test.each(['JWT', 'at+jwt', ''])('nor is one with the claims of a scoped token and the type %j', async (type) => {
    expect(await verify(await signed({}, type))).toBeUndefined()
  })
})

describe('a token that is asked to hold much', () => {
  const long = (number: number) => `team/${'x'.repeat(100)}${number}`
  const many = Array.from({ length: 64 }, (_, number): ScopedGrant => ({ ...app, repository: long(number) }))
  const patterns = (count: number) => Array.from({ length: count }, (_, number) => `${long(number)}/*`) as never[]

  test('holds the first of it, and is still short enough to be used', async () => {
    const principal = { account: 'a'.repeat(128), subject: 's'.repeat(128) }
    const trimmed = trimToken({ principal, access: many, catalog: undefined })
    const verified = await verify(await tokens.issue(trimmed, end))

    expect(trimmed.access.length).toBeGreaterThan(15)
    expect(trimmed.access).toEqual(many.slice(0, trimmed.access.length))
    expect(verified?.grants).toHaveLength(trimmed.access.length)
  })

  test('would otherwise be refused', async () => {
    expect(await verify(await issue({ access: many }))).toBeUndefined()
  })

  test('holds the catalog whole or not at all', () => {
    const few = { principal: ann, access: [app], catalog: patterns(10) }

    expect(trimToken(few)).toEqual(few)
    expect(trimToken({ ...few, catalog: patterns(64) })).toEqual({ ...few, catalog: undefined })
  })

  test('and to hold little, holds all of it', () => {
    const little: ScopedToken = { principal: ann, access: [app], catalog: 'all' }

    expect(trimToken(little)).toEqual(little)
  })
})

describe('a credential is taken for a scoped token', () => {
  test('by the type that it names, good or bad', async () => {
    const token = await issue()

    expect(isScopedToken({ kind: 'bearer', secret: token })).toBe(true)
    expect(isScopedToken({ kind: 'bearer', secret: `${token}x` })).toBe(true)
  })

  test.each([
    ['one that is carried as an API key', async () => ({ kind: 'api-key', secret: await issue() }) as const],
    ['a login token', async () => ({ kind: 'bearer', secret: await new Tokens(ring, clock).issue(user()) }) as const],
    ['one of another type', async () => ({ kind: 'bearer', secret: await signed({}, 'at+jwt') }) as const],
    ['what is no token', async () => ({ kind: 'bearer', secret: 'opaque' }) as const],
  ])('but not %s', async (_, make) => {
    expect(isScopedToken(await make())).toBe(false)
  })
})
