import { beforeAll, describe, expect, test } from 'bun:test'
import { fingerprintOf, generateApiKey, hashApiKey } from '../../../src/identity/api-keys.ts'
import { EmbeddedIdentity, findByPassword } from '../../../src/identity/embedded-identity.ts'
import { hashPassword } from '../../../src/identity/passwords.ts'
import { defaultRoles } from '../../../src/identity/rights.ts'
import { Tokens } from '../../../src/identity/tokens.ts'
import type { User } from '../../../src/ports/user-store.ts'
import { MemoryUsers, user } from '../../support/memory-users.ts'

const now = 1_800_000_000_000
let tokens: Tokens

beforeAll(async () => {
  tokens = await Tokens.open({ current: (generate) => generate() })
})

/** One user with a key that ends in a minute. */
async function openIdentity(rest: Partial<User> = {}) {
  const users = new MemoryUsers()
  const ann = await users.saveUser(user(rest))
  await users.saveApiKey(ann.id, 'first', hashApiKey('the key'), now + 60_000)
  const clock = { time: now, now: () => clock.time }
  return { users, ann, clock, identity: new EmbeddedIdentity({ users, clock, tokens, roles: defaultRoles }) }
}

describe('an API key', () => {
  test('tells who is calling, what they may do, and when that ends', async () => {
    const { identity } = await openIdentity()
    const principal = await identity.authenticate({ kind: 'api-key', secret: 'the key' })

    expect(principal).toMatchObject({ account: 'acme', subject: 'ann', roles: ['writer'], expiresAt: now + 60_000 })
    expect([...(principal?.rights ?? [])]).toEqual(['pull', 'push', 'delete'])
  })

  test('is over when its time is', async () => {
    const { identity, clock } = await openIdentity()
    clock.time += 60_000

    expect(await identity.authenticate({ kind: 'api-key', secret: 'the key' })).toBeUndefined()
  })

  test.each(['', 'THE KEY', 'the key ', hashApiKey('the key')])('%p is none', async (secret) => {
    const { identity } = await openIdentity()

    expect(await identity.authenticate({ kind: 'api-key', secret })).toBeUndefined()
  })

  test('is no token, and a token is no key', async () => {
    const { identity, ann } = await openIdentity()
    const token = await tokens.issue(ann, now)

    expect(await identity.authenticate({ kind: 'bearer', secret: 'the key' })).toBeUndefined()
    expect(await identity.authenticate({ kind: 'api-key', secret: token })).toBeUndefined()
  })

  test('is made of chance, and told apart in a log without being told', () => {
    const [first, second] = [generateApiKey(), generateApiKey()]
    expect(first).not.toBe(second)
    expect(fingerprintOf(first)).toMatch(/^[0-9a-f]{12}$/)
    expect(fingerprintOf(first)).not.toBe(fingerprintOf(second))
    expect(hashApiKey(first)).not.toContain(fingerprintOf(first))
  })
})

describe('a token', () => {
  test('gives the rights that the user has now, not those of the day it was made', async () => {
    const { identity, users, ann } = await openIdentity()
    const secret = await tokens.issue(ann, now)
    await users.saveUser({ ...ann, roles: ['reader'] })

    expect([...((await identity.authenticate({ kind: 'bearer', secret }))?.rights ?? [])]).toEqual(['pull'])
  })

  test('of a user who is not there is none', async () => {
    const { identity } = await openIdentity()
    const secret = await tokens.issue(user({ name: 'nobody' }), now)

    expect(await identity.authenticate({ kind: 'bearer', secret })).toBeUndefined()
  })
})

test('a user who was disabled gets in by nothing', async () => {
  const passwordHash = await hashPassword('a password')
  const { identity, users, ann } = await openIdentity({ isDisabled: true, passwordHash })
  const secret = await tokens.issue(ann, now)

  expect(await identity.authenticate({ kind: 'api-key', secret: 'the key' })).toBeUndefined()
  expect(await identity.authenticate({ kind: 'bearer', secret })).toBeUndefined()
  expect(await findByPassword(users, 'ann', 'a password')).toBeUndefined()
})

describe('a password', () => {
  test('finds its user, and no other does', async () => {
    const users = new MemoryUsers()
    await users.saveUser(user({ passwordHash: await hashPassword('a password') }))

    expect((await findByPassword(users, 'ann', 'a password'))?.name).toBe('ann')
    for (const [name, password] of [
      ['ann', 'A password'],
      ['Ann', 'a password'],
      ['nobody', 'a password'],
      ['ann', 'a password\0'],
    ] as const) {
      expect(await findByPassword(users, name, password)).toBeUndefined()
    }
  })

  test('never fits a user who has none', async () => {
    const users = new MemoryUsers()
    await users.saveUser(user())

    for (const password of ['undefined', 'null', 'AAAA', ' ']) {
      expect(await findByPassword(users, 'ann', password)).toBeUndefined()
    }
  })

  test('may be empty without anything breaking', async () => {
    const users = new MemoryUsers()
    await users.saveUser(user({ passwordHash: await hashPassword('a password') }))

    expect(await findByPassword(users, 'ann', '')).toBeUndefined()
    expect(await findByPassword(users, 'nobody', '')).toBeUndefined()
  })
})
