import { describe, expect, test } from 'bun:test'
import { hashApiKey } from '../../../src/identity/api-keys.ts'
import { ensureAdmin } from '../../../src/identity/first-admin.ts'
import { isPassword } from '../../../src/identity/passwords.ts'
import { MemoryUsers, user } from '../../support/memory-users.ts'

const nothing = { name: 'admin', apiKey: undefined, password: undefined }

describe('a first start', () => {
  test('without presets makes an administrator and gives its key, once', async () => {
    const users = new MemoryUsers()

    const key = await ensureAdmin(users, nothing)
    const again = await ensureAdmin(users, nothing)

    expect(key).toMatch(/^berth_[A-Za-z0-9_-]{43}$/)
    expect(again).toBeUndefined()
    expect(users.users).toMatchObject([{ name: 'admin', roles: ['admin'], isDisabled: false, passwordHash: undefined }])
    expect((await users.findApiKey(hashApiKey(key ?? '')))?.user.name).toBe('admin')
  })

  test('stores no key as it is', async () => {
    const users = new MemoryUsers()
    const key = await ensureAdmin(users, nothing)

    expect(JSON.stringify([users.users, users.keys])).not.toContain(key ?? '-')
  })

  test('makes an account that nobody can guess', async () => {
    const stores = [new MemoryUsers(), new MemoryUsers()]
    for (const users of stores) await ensureAdmin(users, nothing)
    const [first, second] = stores.map(({ users }) => users[0]?.account)

    expect(first).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
    expect(first).not.toBe(second)
  })

  test('with a preset key uses that, and shows nothing', async () => {
    const users = new MemoryUsers()

    expect(await ensureAdmin(users, { ...nothing, apiKey: 'preset key 123' })).toBeUndefined()
    expect((await users.findApiKey(hashApiKey('preset key 123')))?.user.name).toBe('admin')
    expect(users.keys.length).toBe(1)
  })

  test('with a preset password makes one that fits', async () => {
    const users = new MemoryUsers()
    await ensureAdmin(users, { ...nothing, password: 'preset password' })
    const hash = users.users[0]?.passwordHash

    expect(hash).toStartWith('$argon2id$')
    expect(await isPassword('preset password', hash)).toBe(true)
    expect(await isPassword('preset Password', hash)).toBe(false)
  })
})

describe('a later start', () => {
  test('with the same presets writes no user', async () => {
    const users = new MemoryUsers()
    const preset = { name: 'admin', apiKey: 'preset key 123', password: 'preset password' }
    await ensureAdmin(users, preset)
    await ensureAdmin(users, preset)

    expect(users.saves).toBe(1)
  })

  test('with another preset key puts it in place of the old one', async () => {
    const users = new MemoryUsers()
    await ensureAdmin(users, { ...nothing, apiKey: 'old key 123456' })
    await ensureAdmin(users, { ...nothing, apiKey: 'new key 123456' })

    expect(await users.findApiKey(hashApiKey('old key 123456'))).toBeUndefined()
    expect((await users.findApiKey(hashApiKey('new key 123456')))?.user.name).toBe('admin')
  })

  test('with another preset password changes it, and nothing else about the user', async () => {
    const users = new MemoryUsers()
    await users.saveUser(user({ name: 'admin', roles: ['reader'], account: 'acme', isDisabled: true }))
    await ensureAdmin(users, { ...nothing, password: 'new password' })

    const [admin] = users.users
    expect(admin).toMatchObject({ roles: ['reader'], account: 'acme', isDisabled: true })
    expect(await isPassword('new password', admin?.passwordHash)).toBe(true)
  })

  test('without a preset password leaves the one that stands', async () => {
    const users = new MemoryUsers()
    await ensureAdmin(users, { ...nothing, password: 'preset password' })
    await ensureAdmin(users, nothing)

    expect(await isPassword('preset password', users.users[0]?.passwordHash)).toBe(true)
  })
})
