import { describe, expect, test } from 'bun:test'
import { hashApiKey } from '../../../src/identity/api-keys.ts'
import { type AdminPreset, createFirstKey, ensureAdmin } from '../../../src/identity/first-admin.ts'
import { isPassword } from '../../../src/identity/passwords.ts'
import { MemoryApiKeys, MemoryUsers, user } from '../../support/identity/memory-users.ts'

const nothing = { name: 'admin', apiKey: undefined, password: undefined }

function openStore() {
  const users = new MemoryUsers()
  const apiKeys = new MemoryApiKeys(users)
  return {
    users,
    apiKeys,
    start: async (preset: Partial<AdminPreset> = {}) => {
      const admin = await ensureAdmin({ users, apiKeys }, { ...nothing, ...preset })
      return { account: admin.account, firstApiKey: await createFirstKey({ apiKeys }, admin) }
    },
    ownerOf: async (key: string) => (await apiKeys.find(hashApiKey(key)))?.user.name,
    namesOfKeys: () => apiKeys.kept.map(({ key }) => key.name),
  }
}

describe('a first start', () => {
  test('without presets makes an administrator and gives its key, once', async () => {
    const { start, users, ownerOf } = openStore()

    const { firstApiKey, account } = await start()
    const again = await start()

    expect(firstApiKey).toMatch(/^berth_[A-Za-z0-9_-]{43}$/)
    expect(again).toEqual({ account, firstApiKey: undefined })
    expect(users.users).toMatchObject([
      { name: 'admin', roles: ['admin'], isDisabled: false, passwordHash: undefined, account },
    ])
    expect(await ownerOf(firstApiKey ?? '')).toBe('admin')
  })

  test('stores no key as it is', async () => {
    const { start, users, apiKeys } = openStore()
    const { firstApiKey } = await start()

    expect(JSON.stringify([users.users, apiKeys.kept])).not.toContain(firstApiKey ?? '-')
  })

  test('creates an account whose name cannot be guessed', async () => {
    const [first, second] = [await openStore().start(), await openStore().start()]

    expect(first.account).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
    expect(first.account).not.toBe(second.account)
  })

  test('with a preset key uses that, and shows nothing', async () => {
    const { start, ownerOf, namesOfKeys } = openStore()

    expect((await start({ apiKey: 'preset key 123' })).firstApiKey).toBeUndefined()
    expect(await ownerOf('preset key 123')).toBe('admin')
    expect(namesOfKeys()).toEqual(['preset'])
  })

  test('with a preset password makes one that fits', async () => {
    const { start, users } = openStore()
    await start({ password: 'preset password' })
    const hash = users.users[0]?.passwordHash

    expect(hash).toStartWith('$argon2id$')
    expect(await isPassword('preset password', hash)).toBe(true)
    expect(await isPassword('preset Password', hash)).toBe(false)
  })

  test('of two processes at once makes one administrator', async () => {
    const { start, users } = openStore()

    const [one, other] = await Promise.all([start(), start()])

    expect(users.users).toHaveLength(1)
    expect(one.account).toBe(other.account)
    expect([one.firstApiKey, other.firstApiKey].filter((key) => key !== undefined)).toHaveLength(1)
  })
})

describe('a later start', () => {
  test('with the same presets writes no user and no key', async () => {
    const { start, users, apiKeys } = openStore()
    const preset = { apiKey: 'preset key 123', password: 'preset password' }
    await start(preset)
    const kept = [...apiKeys.kept]
    await start(preset)

    expect(users.saves).toBe(1)
    expect(apiKeys.kept).toEqual(kept)
  })

  test('with another preset key puts it in place of the old one', async () => {
    const { start, ownerOf, namesOfKeys } = openStore()
    await start({ apiKey: 'old key 123456' })
    await start({ apiKey: 'new key 123456' })

    expect(await ownerOf('old key 123456')).toBeUndefined()
    expect(await ownerOf('new key 123456')).toBe('admin')
    expect(namesOfKeys()).toEqual(['preset'])
  })

  test('without the preset key takes it away, and makes one that can be used if there is no other', async () => {
    const { start, ownerOf } = openStore()
    await start({ apiKey: 'preset key 123' })
    const { firstApiKey } = await start()

    expect(await ownerOf('preset key 123')).toBeUndefined()
    expect(await ownerOf(firstApiKey ?? '')).toBe('admin')
  })

  test('without the preset key leaves the keys that were made besides', async () => {
    const { start, users, apiKeys, namesOfKeys } = openStore()
    await start({ apiKey: 'preset key 123' })
    const limits = { expiresAt: undefined, rights: undefined, repositories: undefined }
    await apiKeys.add({ userId: users.users[0]?.id ?? 0, name: 'laptop', secretHash: 'a hash', ...limits })

    expect((await start()).firstApiKey).toBeUndefined()
    expect(namesOfKeys()).toEqual(['laptop'])
  })

  test('with the value of another key of the administrator as the preset ends the old preset, and keeps that key as it is', async () => {
    const { start, ownerOf, namesOfKeys } = openStore()
    const { firstApiKey = '' } = await start()
    await start({ apiKey: 'leaked key 123' })
    expect([await ownerOf('leaked key 123'), namesOfKeys()]).toEqual(['admin', ['first', 'preset']])

    expect((await start({ apiKey: firstApiKey })).firstApiKey).toBeUndefined()
    expect(await ownerOf('leaked key 123')).toBeUndefined()
    expect([await ownerOf(firstApiKey), namesOfKeys()]).toEqual(['admin', ['first']])
  })

  test("with the value of another user's key as the preset ends the old preset, and takes that key over", async () => {
    const { start, users, apiKeys, ownerOf, namesOfKeys } = openStore()
    await start({ apiKey: 'leaked key 123' })
    const other = await users.add(user({ name: 'bob', account: 'acme' }))
    const limits = { expiresAt: undefined, rights: undefined, repositories: undefined }
    const secretHash = hashApiKey('key of bob 123')
    await apiKeys.add({ userId: other?.id ?? 0, name: 'laptop', secretHash, ...limits })
    await start({ apiKey: 'key of bob 123' })

    expect(await ownerOf('leaked key 123')).toBeUndefined()
    expect([await ownerOf('key of bob 123'), namesOfKeys()]).toEqual(['admin', ['preset']])
  })

  test('with another administrator and the same key gives the key to that administrator', async () => {
    const { start, users, ownerOf } = openStore()
    await start({ name: 'old', apiKey: 'preset key 123' })
    await start({ name: 'new', apiKey: 'preset key 123' })

    expect(await ownerOf('preset key 123')).toBe('new')
    expect(users.users.map(({ name }) => name)).toEqual(['old', 'new'])
  })

  test('with another preset password changes it, ends the tokens, and nothing else about the user', async () => {
    const { start, users } = openStore()
    const { id: _id, tokenEpoch: _epoch, ...given } = user({ name: 'admin', roles: ['reader'], isDisabled: true })
    await users.add(given)
    await start({ password: 'new password' })

    const [admin] = users.users
    expect(admin).toMatchObject({ roles: ['reader'], account: 'acme', isDisabled: true, tokenEpoch: 1 })
    expect(await isPassword('new password', admin?.passwordHash)).toBe(true)
  })

  test('without a preset password leaves the one that stands', async () => {
    const { start, users } = openStore()
    await start({ password: 'preset password' })
    await start()

    expect(await isPassword('preset password', users.users[0]?.passwordHash)).toBe(true)
    expect(users.saves).toBe(1)
  })
})

describe('no key is created for an administrator', () => {
  test('with a preset password, at the first start and ever after', async () => {
    const { start, namesOfKeys } = openStore()
    const starts = [await start({ password: 'preset password' }), await start({ password: 'preset password' })]

    expect(starts.map(({ firstApiKey }) => firstApiKey)).toEqual([undefined, undefined])
    expect(namesOfKeys()).toEqual([])
  })

  test('with a password, set by any means', async () => {
    const { start, users, namesOfKeys } = openStore()
    const { id: _id, tokenEpoch: _epoch, ...given } = user({ name: 'admin', passwordHash: 'a hash' })
    await users.add(given)

    expect((await start()).firstApiKey).toBeUndefined()
    expect(namesOfKeys()).toEqual([])
  })

  test('with a password, after the preset key or the first key was removed', async () => {
    const { start, users, apiKeys, namesOfKeys } = openStore()
    const { firstApiKey } = await start()
    await start({ apiKey: 'preset key 123', password: 'preset password' })
    expect([firstApiKey === undefined, namesOfKeys()]).toEqual([false, ['first', 'preset']])
    await apiKeys.remove(users.users[0]?.id ?? 0, 'first')

    expect((await start()).firstApiKey).toBeUndefined()
    expect(namesOfKeys()).toEqual([])
  })

  test('but an administrator with neither key nor password gets a key at the next start, once', async () => {
    const { start, users, apiKeys, ownerOf } = openStore()
    const { firstApiKey: old = '' } = await start()
    await apiKeys.remove(users.users[0]?.id ?? 0, 'first')
    const [again, later] = [await start(), await start()]

    expect([await ownerOf(old), await ownerOf(again.firstApiKey ?? '')]).toEqual([undefined, 'admin'])
    expect(later.firstApiKey).toBeUndefined()
  })
})
