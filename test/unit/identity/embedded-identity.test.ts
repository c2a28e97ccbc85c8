import { describe, expect, test } from 'bun:test'
import { generateApiKey, hashApiKey, KeyUseRecorder } from '../../../src/identity/api-keys.ts'
import { EmbeddedIdentity } from '../../../src/identity/embedded-identity.ts'
import { KeyRing } from '../../../src/identity/key-ring.ts'
import { defaultRoles } from '../../../src/identity/rights.ts'
import { Tokens } from '../../../src/identity/tokens.ts'
import { fingerprintOf } from '../../../src/lib/hashing.ts'
import { parseRepositoryPattern } from '../../../src/oci/repository-pattern.ts'
import type { KeyLimits } from '../../../src/ports/api-keys.ts'
import type { Credential, Principal, Right } from '../../../src/ports/identity.ts'
import type { User } from '../../../src/ports/users.ts'
import { MemorySigningKeys, MovingClock } from '../../support/identity/memory-signing-keys.ts'
import { MemoryApiKeys, MemoryUsers, user } from '../../support/identity/memory-users.ts'

const now = 1_800_000_000_000
const apiKey = (secret: string): Credential => ({ kind: 'api-key', secret })
const bearer = (secret: string): Credential => ({ kind: 'bearer', secret })
const rightsOf = (principal: Principal | undefined): Right[] =>
  (principal?.grants ?? []).flatMap(({ rights }) => [...rights])

function patternOf(text: string) {
  const pattern = parseRepositoryPattern(text)
  if (pattern === undefined) throw new Error(`${text} is no pattern`)
  return pattern
}

/** One user with a key that ends in a minute. */
async function openIdentity(rest: Partial<User> = {}, limits: Partial<KeyLimits> = {}) {
  const users = new MemoryUsers()
  const apiKeys = new MemoryApiKeys(users)
  const { id: _id, tokenEpoch: _epoch, ...given } = user(rest)
  const ann = (await users.add(given)) ?? user()
  const secretHash = hashApiKey('the key')
  const expiresAt = now + 60_000
  const all = { expiresAt, rights: undefined, repositories: undefined, ...limits }
  await apiKeys.add({ userId: ann.id, name: 'first', secretHash, ...all })
  const clock = new MovingClock(now)
  const tokens = new Tokens(await KeyRing.open(new MemorySigningKeys(), clock, 0), clock)
  const uses = new KeyUseRecorder(apiKeys)
  const identity = new EmbeddedIdentity({ users, apiKeys, uses, clock, tokens, roles: defaultRoles })
  return { users, apiKeys, ann, clock, tokens, uses, identity }
}

describe('an API key', () => {
  test('tells who is calling, what they may do, and when that ends', async () => {
    const { identity } = await openIdentity()
    const principal = await identity.authenticate(apiKey('the key'))

    expect(principal).toEqual({
      account: 'acme',
      subject: 'ann',
      roles: ['writer'],
      grants: [{ rights: new Set<Right>(['pull', 'push', 'delete']) }],
      fingerprint: fingerprintOf('the key'),
      expiresAt: now + 60_000,
      keyExpiresAt: now + 60_000,
    })
  })

  test('is over when its time is', async () => {
    const { identity, clock } = await openIdentity()
    clock.at += 59_999
    expect(await identity.authenticate(apiKey('the key'))).toBeDefined()
    clock.at += 1

    expect(await identity.authenticate(apiKey('the key'))).toBeUndefined()
  })

  test('without an end has none', async () => {
    const { identity, clock } = await openIdentity({}, { expiresAt: undefined })
    clock.at += 1e13

    expect((await identity.authenticate(apiKey('the key')))?.expiresAt).toBeUndefined()
    expect(rightsOf(await identity.authenticate(apiKey('the key')))).toHaveLength(3)
  })

  test('may do of its user’s rights only those that it is limited to, and none that he has not', async () => {
    const { identity } = await openIdentity({}, { rights: ['pull', 'operate'] })

    expect((await identity.authenticate(apiKey('the key')))?.grants).toEqual([{ rights: new Set<Right>(['pull']) }])
  })

  test('that is limited to no rights may do nothing', async () => {
    const { identity } = await openIdentity({ roles: ['admin'] }, { rights: [] })

    expect(rightsOf(await identity.authenticate(apiKey('the key')))).toEqual([])
  })

  test('has what it has only in the repositories that it is limited to', async () => {
    const repositories = [patternOf('team/*'), patternOf('one/app')]
    const { identity } = await openIdentity({}, { repositories, rights: ['pull'] })

    expect((await identity.authenticate(apiKey('the key')))?.grants).toEqual([
      { rights: new Set<Right>(['pull']), repositories },
    ])
  })

  test('that is limited to no repositories is not one for all', async () => {
    const { identity } = await openIdentity({}, { repositories: [] })

    expect((await identity.authenticate(apiKey('the key')))?.grants).toMatchObject([{ repositories: [] }])
  })

  test('loses what its user loses, and is nobody’s when it was revoked', async () => {
    const { identity, users, apiKeys, ann } = await openIdentity()
    await users.change(ann.id, { roles: ['reader'] })
    expect(rightsOf(await identity.authenticate(apiKey('the key')))).toEqual(['pull'])
    await apiKeys.remove(ann.id, 'first')

    expect(await identity.authenticate(apiKey('the key'))).toBeUndefined()
  })

  test.each(['', 'THE KEY', 'the key ', hashApiKey('the key')])('%p is none', async (secret) => {
    const { identity } = await openIdentity()

    expect(await identity.authenticate(apiKey(secret))).toBeUndefined()
  })

  test('is no token, and a token is no key', async () => {
    const { identity, ann, tokens } = await openIdentity()
    const token = await tokens.issue(ann)

    expect(await identity.authenticate(bearer('the key'))).toBeUndefined()
    expect(await identity.authenticate(apiKey(token))).toBeUndefined()
    expect(await identity.authenticate(bearer(token))).toBeDefined()
  })

  test('is made of chance, and told apart in a log without being told', () => {
    const [first, second] = [generateApiKey(), generateApiKey()]
    expect(first).not.toBe(second)
    expect(fingerprintOf(first)).toMatch(/^[0-9a-f]{12}$/)
    expect(fingerprintOf(first)).not.toBe(fingerprintOf(second))
    expect(hashApiKey(first)).not.toContain(fingerprintOf(first))
  })
})

describe('that a key was used', () => {
  test('is noted when it was good, and not when it had ended', async () => {
    const { identity, apiKeys, ann, uses, clock } = await openIdentity()
    clock.at += 60_000
    await identity.authenticate(apiKey('the key'))
    await uses.flush()
    expect((await apiKeys.list(ann.id))[0]?.lastUsedAt).toBeUndefined()
    clock.at -= 1
    await identity.authenticate(apiKey('the key'))
    await uses.flush()

    expect((await apiKeys.list(ann.id))[0]?.lastUsedAt).toBeNumber()
  })

  test('is not waited for', async () => {
    const { identity, apiKeys, ann } = await openIdentity()
    await identity.authenticate(apiKey('the key'))

    expect((await apiKeys.list(ann.id))[0]?.lastUsedAt).toBeUndefined()
  })
})

describe('a token', () => {
  test('gives the rights that the user has now, not those of the day it was made', async () => {
    const { identity, users, ann, tokens } = await openIdentity()
    const token = await tokens.issue(ann)
    await users.change(ann.id, { roles: ['reader'] })

    expect(rightsOf(await identity.authenticate(bearer(token)))).toEqual(['pull'])
  })

  test('of a user who is not there is none', async () => {
    const { identity, tokens } = await openIdentity()

    expect(await identity.authenticate(bearer(await tokens.issue(user({ name: 'nobody' }))))).toBeUndefined()
  })

  test.each([{ passwordHash: 'another hash' }, { isDisabled: true }])('ends with %j', async (change) => {
    const { identity, users, ann, tokens } = await openIdentity()
    const token = await tokens.issue(ann)
    const changed = await users.change(ann.id, change)
    expect(await identity.authenticate(bearer(token))).toBeUndefined()
    await users.change(ann.id, { isDisabled: false })

    expect(await identity.authenticate(bearer(token))).toBeUndefined()
    expect(await identity.authenticate(bearer(await tokens.issue(changed ?? ann)))).toBeDefined()
  })

  test.each([{ roles: ['reader'] }, { isDisabled: false }])('does not end with %j', async (change) => {
    const { identity, users, ann, tokens } = await openIdentity()
    const token = await tokens.issue(ann)
    await users.change(ann.id, change)

    expect((await identity.authenticate(bearer(token)))?.subject).toBe('ann')
  })

  test('of a number that the user never had is none', async () => {
    const { identity, ann, tokens } = await openIdentity()

    expect(await identity.authenticate(bearer(await tokens.issue({ ...ann, tokenEpoch: 1 })))).toBeUndefined()
  })
})

test('a user who was disabled gets in by nothing', async () => {
  const { identity, ann, tokens } = await openIdentity({ isDisabled: true })
  const token = await tokens.issue(ann)

  expect(await identity.authenticate(apiKey('the key'))).toBeUndefined()
  expect(await identity.authenticate(bearer(token))).toBeUndefined()
})
