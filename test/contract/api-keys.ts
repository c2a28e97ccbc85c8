// The contract of every store of API keys (src/ports/api-keys.ts).
import { describe, expect, test } from 'bun:test'
import { parseRepositoryPattern, type RepositoryPattern } from '../../src/oci/repository-pattern.ts'
import type { ApiKeys, NewApiKey } from '../../src/ports/api-keys.ts'
import type { RowId } from '../../src/ports/row-id.ts'
import type { User, Users } from '../../src/ports/users.ts'
import { errorOf, outcomeOf } from '../support/basics/outcomes.ts'

export interface OpenedApiKeys {
  readonly users: Users
  readonly apiKeys: ApiKeys
}

type Open = () => Promise<OpenedApiKeys>

const unlimited = { expiresAt: undefined, rights: undefined, repositories: undefined }

function pattern(text: string): RepositoryPattern {
  const parsed = parseRepositoryPattern(text)
  if (parsed === undefined) throw new Error(`${text} is no pattern`)
  return parsed
}

function keyOf(userId: RowId, name: string, rest: Partial<NewApiKey> = {}): NewApiKey {
  return { userId, name, secretHash: `hash of ${name}`, ...unlimited, ...rest }
}

async function openWithTwo(open: Open) {
  const { users, apiKeys } = await open()
  const rest = { passwordHash: undefined, roles: ['writer'], account: 'acme', isDisabled: false }
  const [alice, bob] = [await users.add({ name: 'alice', ...rest }), await users.add({ name: 'bob', ...rest })]
  if (alice === undefined || bob === undefined) throw new Error('the keeper was not empty')
  return { users, apiKeys, alice, bob }
}

export function apiKeysContract(name: string, open: Open): void {
  describe(`API keys, ${name}`, () => {
    describe('that are looked for', () => findContract(open))
    describe('of one name or one hash', () => uniqueContract(open))
    describe('in a list', () => listContract(open))
    describe('that are revoked', () => removeContract(open))
    describe('that are used', () => usesContract(open))
  })
}

function findContract(open: Open): void {
  test('are found by their hash, with all their limits', async () => {
    const { apiKeys, alice } = await openWithTwo(open)
    const limits = {
      expiresAt: 2_000_000_000_000,
      rights: ['pull', 'push'] as const,
      repositories: [pattern('team/*'), pattern('one/app')],
    }
    await apiKeys.add(keyOf(alice.id, 'laptop', limits))
    await apiKeys.add(keyOf(alice.id, 'robot'))

    const [limited, free] = [await apiKeys.find('hash of laptop'), await apiKeys.find('hash of robot')]

    expect(limited?.user).toEqual(alice)
    expect(limited?.key).toMatchObject({ name: 'laptop', ...limits, lastUsedAt: undefined })
    expect(free?.key).toMatchObject({ name: 'robot', ...unlimited, lastUsedAt: undefined })
    expect(limited?.key.id).not.toBe(free?.key.id)
  })

  test('that are limited to nothing are not those without limits', async () => {
    const { apiKeys, alice } = await openWithTwo(open)
    await apiKeys.add(keyOf(alice.id, 'laptop', { rights: [], repositories: [] }))

    expect((await apiKeys.find('hash of laptop'))?.key).toMatchObject({ rights: [], repositories: [] })
  })

  test('come with the current row of their user', async () => {
    const { users, apiKeys, alice } = await openWithTwo(open)
    await apiKeys.add(keyOf(alice.id, 'laptop'))
    expect((await apiKeys.find('hash of laptop'))?.user).toEqual(alice)

    const disabled = await users.change(alice.id, { isDisabled: true, roles: [] })

    expect((await apiKeys.find('hash of laptop'))?.user).toEqual(disabled as User)
  })

  test('are not found by anything else', async () => {
    const { apiKeys, alice } = await openWithTwo(open)
    await apiKeys.add(keyOf(alice.id, 'laptop'))

    for (const other of ['hash of robot', 'laptop', 'HASH OF LAPTOP', 'hash of laptop ', 'hash of %', '']) {
      expect([other, await apiKeys.find(other)]).toEqual([other, undefined])
    }
  })

  test('that have expired are given all the same: to judge that is for the caller', async () => {
    const { apiKeys, alice } = await openWithTwo(open)
    await apiKeys.add(keyOf(alice.id, 'laptop', { expiresAt: 1 }))

    expect((await apiKeys.find('hash of laptop'))?.key.expiresAt).toBe(1)
  })

  test('do not tell their hash', async () => {
    const { apiKeys, alice } = await openWithTwo(open)
    await apiKeys.add(keyOf(alice.id, 'laptop', { secretHash: 'the-hash-itself' }))

    const told = [await apiKeys.find('the-hash-itself'), await apiKeys.list(alice.id)]

    expect(Bun.inspect(told, { depth: 9 })).not.toContain('the-hash-itself')
  })
}

function uniqueContract(open: Open): void {
  test('are refused when the user has one of that name, and nothing is changed', async () => {
    const { apiKeys, alice } = await openWithTwo(open)
    expect(await apiKeys.add(keyOf(alice.id, 'laptop', { expiresAt: 1 }))).toBe(true)

    expect(await apiKeys.add(keyOf(alice.id, 'laptop', { secretHash: 'another hash' }))).toBe(false)

    expect(await apiKeys.find('another hash')).toBeUndefined()
    expect((await apiKeys.find('hash of laptop'))?.key.expiresAt).toBe(1)
    expect((await apiKeys.list(alice.id)).length).toBe(1)
  })

  test('all at once under one name are one key', async () => {
    const { apiKeys, alice } = await openWithTwo(open)

    const added = await Promise.all(
      [1, 2, 3].map((n) => apiKeys.add(keyOf(alice.id, 'laptop', { secretHash: `hash ${n}` }))),
    )

    expect(added.filter((isNew) => isNew).length).toBe(1)
    expect((await apiKeys.list(alice.id)).length).toBe(1)
  })

  test('may have the same name with different users', async () => {
    const { apiKeys, alice, bob } = await openWithTwo(open)

    await apiKeys.add(keyOf(alice.id, 'laptop', { secretHash: 'hash 1' }))
    expect(await apiKeys.add(keyOf(bob.id, 'laptop', { secretHash: 'hash 2' }))).toBe(true)

    expect((await apiKeys.find('hash 1'))?.user.name).toBe('alice')
    expect((await apiKeys.find('hash 2'))?.user.name).toBe('bob')
  })

  test('have no hash that another key has, nor a user that is not there', async () => {
    const { apiKeys, alice, bob } = await openWithTwo(open)
    await apiKeys.add(keyOf(alice.id, 'laptop'))

    await errorOf(apiKeys.add(keyOf(bob.id, 'other', { secretHash: 'hash of laptop' })))
    await errorOf(apiKeys.add(keyOf(alice.id, 'other', { secretHash: 'hash of laptop' })))
    expect(await outcomeOf(apiKeys.add(keyOf(999_999, 'robot')))).toBe('refused')

    expect((await apiKeys.find('hash of laptop'))?.user.name).toBe('alice')
    expect(await apiKeys.find('hash of robot')).toBeUndefined()
    expect(await apiKeys.list(bob.id)).toEqual([])
  })
}

function listContract(open: Open): void {
  test('are all of one user, by name', async () => {
    const { apiKeys, alice, bob } = await openWithTwo(open)
    for (const name of ['robot', 'Laptop', 'laptop']) await apiKeys.add(keyOf(alice.id, name))
    await apiKeys.add(keyOf(bob.id, 'phone'))

    expect((await apiKeys.list(alice.id)).map(({ name }) => name)).toEqual(['Laptop', 'laptop', 'robot'])
    expect((await apiKeys.list(bob.id)).map(({ name }) => name)).toEqual(['phone'])
    expect(await apiKeys.list(999_999)).toEqual([])
  })

  test('are told as they are found', async () => {
    const { apiKeys, alice } = await openWithTwo(open)
    await apiKeys.add(keyOf(alice.id, 'laptop', { rights: ['pull'], repositories: [pattern('a/*')], expiresAt: 5 }))

    const [listed] = await apiKeys.list(alice.id)
    const found = await apiKeys.find('hash of laptop')

    expect(found?.key).toMatchObject({ ...listed })
  })
}

function removeContract(open: Open): void {
  test('are found no more, and the others are', async () => {
    const { apiKeys, alice, bob } = await openWithTwo(open)
    await apiKeys.add(keyOf(alice.id, 'laptop'))
    await apiKeys.add(keyOf(alice.id, 'robot'))
    await apiKeys.add(keyOf(bob.id, 'laptop', { secretHash: 'hash of bob' }))
    expect(await apiKeys.find('hash of laptop')).toBeDefined()

    expect(await apiKeys.remove(alice.id, 'laptop')).toBe(true)

    expect(await apiKeys.find('hash of laptop')).toBeUndefined()
    expect((await apiKeys.list(alice.id)).map(({ name }) => name)).toEqual(['robot'])
    expect(await apiKeys.find('hash of bob')).toBeDefined()
  })

  test('and were not there are told so', async () => {
    const { apiKeys, alice, bob } = await openWithTwo(open)
    await apiKeys.add(keyOf(alice.id, 'laptop'))
    await apiKeys.remove(alice.id, 'laptop')

    expect(await apiKeys.remove(alice.id, 'laptop')).toBe(false)
    expect(await apiKeys.remove(bob.id, 'laptop')).toBe(false)
  })

  test('leave their name to another', async () => {
    const { apiKeys, alice } = await openWithTwo(open)
    await apiKeys.add(keyOf(alice.id, 'laptop'))
    await apiKeys.remove(alice.id, 'laptop')

    expect(await apiKeys.add(keyOf(alice.id, 'laptop', { secretHash: 'another hash' }))).toBe(true)
    expect(await apiKeys.find('hash of laptop')).toBeUndefined()
    expect((await apiKeys.find('another hash'))?.key.name).toBe('laptop')
  })
}

function usesContract(open: Open): void {
  test('have it noted, and those that are not do not', async () => {
    const { apiKeys, alice } = await openWithTwo(open)
    for (const name of ['one', 'other', 'third']) await apiKeys.add(keyOf(alice.id, name))
    const [one, other] = await apiKeys.list(alice.id)
    expect([one?.lastUsedAt, await apiKeys.hasAnyBeenUsed()]).toEqual([undefined, false])

    await apiKeys.recordUses([one?.id ?? 0, other?.id ?? 0])
    expect(await apiKeys.hasAnyBeenUsed()).toBe(true)

    const used = (await apiKeys.list(alice.id)).map(({ lastUsedAt }) => lastUsedAt)
    expect(used).toEqual([expect.any(Number), expect.any(Number), undefined])
    expect((await apiKeys.find('hash of one'))?.key.lastUsedAt).toBe(used[0] ?? -1)
  })

  test('may be gone meanwhile, or none at all', async () => {
    const { apiKeys, alice } = await openWithTwo(open)
    await apiKeys.add(keyOf(alice.id, 'laptop'))
    const [laptop] = await apiKeys.list(alice.id)

    await apiKeys.recordUses([])
    expect((await apiKeys.list(alice.id))[0]?.lastUsedAt).toBeUndefined()
    await apiKeys.recordUses([999_999, laptop?.id ?? 0])

    expect((await apiKeys.list(alice.id))[0]?.lastUsedAt).toBeNumber()
  })
}
