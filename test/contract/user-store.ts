// What every user store promises (src/ports/user-store.ts), as tests.
import { describe, expect, test } from 'bun:test'
import type { User, UserStore } from '../../src/ports/user-store.ts'
import { outcomeOf } from '../support/outcomes.ts'

const alice: Omit<User, 'id'> = {
  name: 'alice',
  passwordHash: '$argon2id$v=19$not-a-real-one',
  roles: ['admin', 'a role, with "signs"'],
  account: 'acme',
  isDisabled: false,
}

export function userStoreContract(name: string, open: () => Promise<UserStore>): void {
  describe(`user store, ${name}`, () => {
    describe('users', () => usersContract(open))
    describe('API keys', () => apiKeysContract(open))
  })
}

function usersContract(open: () => Promise<UserStore>): void {
  test('are found as they were saved', async () => {
    const users = await open()

    const saved = await users.saveUser(alice)

    expect(saved).toMatchObject(alice)
    expect(await users.findUser('alice')).toEqual(saved)
  })

  test('that were never saved are not found, nor by a name in other letters', async () => {
    const users = await open()
    await users.saveUser(alice)

    expect(await users.findUser('bob')).toBeUndefined()
    expect(await users.findUser('Alice')).toBeUndefined()
    expect(await users.findUser("' OR 1=1 --")).toBeUndefined()
  })

  test('saved again are the same user with another password, account, roles and state', async () => {
    const users = await open()
    const { id } = await users.saveUser(alice)
    const changed = { name: 'alice', passwordHash: undefined, roles: [], account: 'rival', isDisabled: true }

    expect(await users.saveUser(changed)).toEqual({ id, ...changed })
    expect(await users.findUser('alice')).toEqual({ id, ...changed })
  })

  test('are different users under different names', async () => {
    const users = await open()

    const [one, other] = [await users.saveUser(alice), await users.saveUser({ ...alice, name: 'bob' })]

    expect(one.id).not.toBe(other.id)
  })
}

function apiKeysContract(open: () => Promise<UserStore>): void {
  test('are found by their hash, with their user as he is now', async () => {
    const users = await open()
    const user = await users.saveUser(alice)
    await users.saveApiKey(user.id, 'laptop', 'hash 1', 2_000_000_000_000)
    await users.saveApiKey(user.id, 'robot', 'hash 2', undefined)

    expect(await users.findApiKey('hash 1')).toEqual({ name: 'laptop', user, expiresAt: 2_000_000_000_000 })
    expect(await users.findApiKey('hash 2')).toEqual({ name: 'robot', user, expiresAt: undefined })

    const disabled = await users.saveUser({ ...alice, isDisabled: true })
    expect((await users.findApiKey('hash 1'))?.user).toEqual(disabled)
  })

  test('that were never saved are not found', async () => {
    const users = await open()
    const user = await users.saveUser(alice)
    await users.saveApiKey(user.id, 'laptop', 'hash 1', undefined)

    expect(await users.findApiKey('hash 2')).toBeUndefined()
    expect(await users.findApiKey('laptop')).toBeUndefined()
    expect(await users.findApiKey('')).toBeUndefined()
  })

  test('that have expired are given all the same: to judge that is for the caller', async () => {
    const users = await open()
    const user = await users.saveUser(alice)
    await users.saveApiKey(user.id, 'laptop', 'hash 1', 1)

    expect((await users.findApiKey('hash 1'))?.expiresAt).toBe(1)
  })

  test('of the same name replace each other, and the old one is good no more', async () => {
    const users = await open()
    const user = await users.saveUser(alice)
    await users.saveApiKey(user.id, 'laptop', 'hash 1', 1)

    await users.saveApiKey(user.id, 'laptop', 'hash 2', undefined)

    expect(await users.findApiKey('hash 1')).toBeUndefined()
    expect(await users.findApiKey('hash 2')).toEqual({ name: 'laptop', user, expiresAt: undefined })
  })

  test('of the same name may belong to different users', async () => {
    const users = await open()
    const [one, other] = [await users.saveUser(alice), await users.saveUser({ ...alice, name: 'bob' })]
    await users.saveApiKey(one.id, 'laptop', 'hash 1', undefined)
    await users.saveApiKey(other.id, 'laptop', 'hash 2', undefined)

    expect((await users.findApiKey('hash 1'))?.user.name).toBe('alice')
    expect((await users.findApiKey('hash 2'))?.user.name).toBe('bob')
  })

  test('may be asked for without being known', async () => {
    const users = await open()
    const [one, other] = [await users.saveUser(alice), await users.saveUser({ ...alice, name: 'bob' })]
    await users.saveApiKey(one.id, 'laptop', 'hash 1', undefined)

    expect(await users.hasApiKey(one.id)).toBe(true)
    expect(await users.hasApiKey(other.id)).toBe(false)
  })

  test('cannot be given to nobody, nor one hash to two users', async () => {
    const users = await open()
    const [one, other] = [await users.saveUser(alice), await users.saveUser({ ...alice, name: 'bob' })]
    await users.saveApiKey(one.id, 'laptop', 'hash 1', undefined)

    expect(await outcomeOf(users.saveApiKey(999_999, 'laptop', 'hash 2', undefined))).toBe('refused')
    expect(await outcomeOf(users.saveApiKey(other.id, 'laptop', 'hash 1', undefined))).toBe('refused')
    expect((await users.findApiKey('hash 1'))?.user.name).toBe('alice')
  })
}
