import { describe, expect, test } from 'bun:test'
import { createApiKey, hashApiKey, listApiKeys, parseKeyName, revokeApiKey } from '../../../src/identity/api-keys.ts'
import { RegistryRefusal } from '../../../src/oci/errors.ts'
import type { KeyLimits } from '../../../src/ports/api-keys.ts'
import { errorOf, refusalOf } from '../../support/basics/outcomes.ts'
import { MovingClock } from '../../support/identity/memory-signing-keys.ts'
import { MemoryApiKeys, MemoryUsers, storeOf, user } from '../../support/identity/memory-users.ts'

const unlimited: KeyLimits = { expiresAt: undefined, rights: undefined, repositories: undefined }

async function openKeys(keysMax = 100) {
  const users = new MemoryUsers()
  const apiKeys = new MemoryApiKeys(users)
  const { id: _id, tokenEpoch: _epoch, ...given } = user()
  const ann = (await users.add(given)) ?? user()
  const clock = new MovingClock()
  const create = (name: string, limits: Partial<KeyLimits> = {}) =>
    createApiKey(
      { metadata: storeOf(users, apiKeys), clock },
      ann.name,
      { name: parseKeyName(name), ...unlimited, ...limits },
      keysMax,
    )
  return { apiKeys, ann, clock, create }
}

async function refusalBy(promise: Promise<unknown>): Promise<string> {
  const error = await errorOf(promise)
  return error instanceof RegistryRefusal ? error.refusal : String(error)
}

describe('a new key', () => {
  test('is given once, and kept as its hash alone', async () => {
    const { apiKeys, create } = await openKeys()
    const key = await create('laptop')

    expect(key).toMatch(/^berth_[A-Za-z0-9_-]{43}$/)
    expect((await apiKeys.find(hashApiKey(key)))?.key.name).toBe('laptop')
    expect(JSON.stringify(apiKeys.kept)).not.toContain(key.slice('berth_'.length))
  })

  test('is unlike every other', async () => {
    const { create } = await openKeys()
    const keys = await Promise.all(Array.from({ length: 50 }, (_, index) => create(`key-${index}`)))

    expect(new Set(keys).size).toBe(50)
  })

  test('must end later than now', async () => {
    const { apiKeys, ann, clock, create } = await openKeys()

    expect(await refusalBy(create('past', { expiresAt: clock.at }))).toBe('identity-invalid')
    expect(await refusalBy(create('past', { expiresAt: 0 }))).toBe('identity-invalid')
    expect(await apiKeys.list(ann.id)).toEqual([])
    await create('future', { expiresAt: clock.at + 1 })
  })

  test('must have a name of its own', async () => {
    const { apiKeys, ann, create } = await openKeys()
    const key = await create('laptop')

    expect(await refusalBy(create('laptop'))).toBe('key-exists')
    expect(await apiKeys.list(ann.id)).toHaveLength(1)
    expect(await apiKeys.find(hashApiKey(key))).toBeDefined()
  })

  test('must have a name of its own, though another took it a moment ago', async () => {
    const { apiKeys, ann, create } = await openKeys()
    const outcomes = await Promise.allSettled([create('laptop'), create('laptop')])

    expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
    expect(await apiKeys.list(ann.id)).toHaveLength(1)
  })

  test('is one of so many and no more; one that was revoked makes room', async () => {
    const { apiKeys, ann, create } = await openKeys(2)
    await create('one')
    await create('two')
    expect(await refusalBy(create('three'))).toBe('too-many-keys')
    await revokeApiKey({ apiKeys }, ann, 'one')
    await create('three')

    expect((await listApiKeys({ apiKeys }, ann)).map(({ name }) => name)).toEqual(['three', 'two'])
  })
})

test('a key that is not there cannot be revoked', async () => {
  const { apiKeys, ann } = await openKeys()

  expect(await refusalBy(revokeApiKey({ apiKeys }, ann, 'laptop'))).toBe('key-unknown')
})

describe('the name of a key', () => {
  test.each(['a', 'A1', 'ci.example_2-x@host+1', '0', 'first', 'x'.repeat(64)])('may be %p', (name) => {
    expect(String(parseKeyName(name))).toBe(name)
  })

  test.each(['', ' ', '-a', '.a', 'a b', 'a/b', 'a\n', 'ä', 'x'.repeat(65), '(preset)', 'a%2e'])(
    'may not be %j',
    (name) => {
      expect(refusalOf(() => parseKeyName(name))).toBe('identity-invalid')
    },
  )

  test('may not be that of the configuration’s key, which goes with the configuration', () => {
    expect(refusalOf(() => parseKeyName('preset'))).toBe('identity-invalid')
  })
})
