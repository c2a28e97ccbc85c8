import { describe, expect, test } from 'bun:test'
import { createApiKey, hashApiKey, parseKeyName } from '../../../src/identity/api-keys.ts'
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
