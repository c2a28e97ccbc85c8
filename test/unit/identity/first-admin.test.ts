import { describe, expect, test } from 'bun:test'
import { hashApiKey } from '../../../src/identity/api-key-secrets.ts'
import { type AdminPreset, createFirstKey, ensureAdmin } from '../../../src/identity/first-admin.ts'
import { isPassword } from '../../../src/identity/passwords.ts'
import type { User } from '../../../src/ports/users.ts'
import { MemoryApiKeys, MemoryUsers, user } from '../../support/identity/memory-users.ts'

const nothing = { name: 'admin', apiKey: undefined, password: undefined }
const unlimited = { expiresAt: undefined, rights: undefined, repositories: undefined }

function openStore() {
  const users = new MemoryUsers()
  const apiKeys = new MemoryApiKeys(users)
  return {
    users,
    apiKeys,
    add: ({ id: _id, tokenEpoch: _epoch, ...given }: User) => users.add(given),
    start: async (preset: Partial<AdminPreset> = {}) => {
      const admin = await ensureAdmin({ users, apiKeys }, { ...nothing, ...preset })
      return { account: admin.account, firstApiKey: await createFirstKey({ apiKeys }, admin) }
    },
  }
}

type Store = ReturnType<typeof openStore>

/** A start with these presets, or something that happens between two starts. */
type Event = Partial<AdminPreset> | ((store: Store) => Promise<unknown>)

const password = 'preset password'
const addKey = (owner: string, name: string, secret: string) => async (store: Store) => {
  const holder = (await store.users.find(owner)) ?? (await store.add(user({ name: owner })))
  return store.apiKeys.add({ userId: holder?.id ?? 0, name, secretHash: hashApiKey(secret), ...unlimited })
}
const revokeFirst = (store: Store) => store.apiKeys.remove(store.users.users[0]?.id ?? 0, 'first')

/** What each event leaves: `owner/name = secret` of each key. `shown 1` is the first key that a start has shown. */
async function keysAfterEach(events: readonly Event[]): Promise<string[]> {
  const store = openStore()
  const secrets = new Map(['key A', 'key B'].map((secret) => [hashApiKey(secret), secret]))
  const seen: string[] = []
  let shown = 0
  for (const event of events) {
    if (typeof event === 'function') await event(store)
    else {
      const { firstApiKey } = await store.start(event)
      shown += firstApiKey === undefined ? 0 : 1
      if (firstApiKey !== undefined) secrets.set(hashApiKey(firstApiKey), `shown ${shown}`)
    }
    const ownerOf = (id: number) => store.users.users.find((one) => one.id === id)?.name
    seen.push(
      store.apiKeys.kept.map((one) => `${ownerOf(one.userId)}/${one.key.name} = ${secrets.get(one.secretHash)}`).join(),
    )
  }
  return seen
}

describe('the keys after each start', () => {
  const rows: readonly (readonly [string, readonly Event[], readonly string[]])[] = [
    ['one key is created and shown once', [{}, {}], ['admin/first = shown 1', 'admin/first = shown 1']],
    ['a preset key is used, and none is created', [{ apiKey: 'key A' }], ['admin/preset = key A']],
    [
      'another preset key replaces the first',
      [{ apiKey: 'key A' }, { apiKey: 'key B' }],
      ['admin/preset = key A', 'admin/preset = key B'],
    ],
    [
      'without its preset a key is removed, and a key is created if there is no other',
      [{ apiKey: 'key A' }, {}],
      ['admin/preset = key A', 'admin/first = shown 1'],
    ],
    [
      'without its preset a key is removed, and other keys stay',
      [{ apiKey: 'key A' }, addKey('admin', 'laptop', 'key B'), {}],
      ['admin/preset = key A', 'admin/preset = key A,admin/laptop = key B', 'admin/laptop = key B'],
    ],
    [
      'another key of the administrator as the preset ends the old preset, and keeps its name',
      [addKey('admin', 'laptop', 'key B'), { apiKey: 'key A' }, { apiKey: 'key B' }],
      ['admin/laptop = key B', 'admin/laptop = key B,admin/preset = key A', 'admin/laptop = key B'],
    ],
    [
      'the key of another user as the preset ends the old preset, and is taken from that user',
      [{ apiKey: 'key A' }, addKey('bob', 'laptop', 'key B'), { apiKey: 'key B' }],
      ['admin/preset = key A', 'admin/preset = key A,bob/laptop = key B', 'admin/preset = key B'],
    ],
    [
      'the same preset for another administrator is given to that administrator',
      [
        { name: 'old', apiKey: 'key A' },
        { name: 'new', apiKey: 'key A' },
      ],
      ['old/preset = key A', 'new/preset = key A'],
    ],
    [
      'with a preset password none is created, at the first start and later',
      [{ password }, { password }, {}],
      ['', '', ''],
    ],
    [
      'with a password that was set by other means none is created',
      [(store) => store.add(user({ name: 'admin', passwordHash: 'a hash' })), {}],
      ['', ''],
    ],
    [
      'with a password none is created after the others were removed',
      [{}, { apiKey: 'key A', password }, revokeFirst, {}],
      ['admin/first = shown 1', 'admin/first = shown 1,admin/preset = key A', 'admin/preset = key A', ''],
    ],
    [
      'for an administrator with neither key nor password one is created again, once',
      [{}, revokeFirst, {}, {}],
      ['admin/first = shown 1', '', 'admin/first = shown 2', 'admin/first = shown 2'],
    ],
  ]
  test.each(rows)('%s', async (_, events, expected) => {
    expect(await keysAfterEach(events)).toEqual([...expected])
  })
})

describe('the administrator', () => {
  test('is created once by two processes, which show one key, and store no key as it is', async () => {
    const { start, users, apiKeys } = openStore()
    const [one, other] = await Promise.all([start(), start()])
    const shown = [one.firstApiKey, other.firstApiKey].filter((key) => key !== undefined)

    expect(users.users).toMatchObject([
      { name: 'admin', roles: ['admin'], isDisabled: false, passwordHash: undefined, account: one.account },
    ])
    expect([other.account, shown]).toEqual([one.account, [expect.stringMatching(/^berth_[A-Za-z0-9_-]{43}$/)]])
    expect(JSON.stringify([users.users, apiKeys.kept])).not.toContain(shown[0] ?? '-')
    // The name of the account cannot be guessed.
    expect(one.account).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
    expect((await openStore().start()).account).not.toBe(one.account)
  })

  test('is written once with the same presets, and keeps the password if there is no preset any more', async () => {
    const { start, users } = openStore()
    for (const preset of [{ apiKey: 'key A', password }, { apiKey: 'key A', password }, {}]) await start(preset)
    const hash = users.users[0]?.passwordHash

    expect([users.saves, hash]).toEqual([1, expect.stringMatching(/^\$argon2id\$/)])
    expect([await isPassword(password, hash), await isPassword(`${password}x`, hash)]).toEqual([true, false])
  })

  test('gets another preset password, which ends the tokens and changes nothing else', async () => {
    const { start, users, add } = openStore()
    await add(user({ name: 'admin', roles: ['reader'], isDisabled: true }))
    await start({ password })

    const [admin] = users.users
    expect(admin).toMatchObject({ roles: ['reader'], account: 'acme', isDisabled: true, tokenEpoch: 1 })
    expect(await isPassword(password, admin?.passwordHash)).toBe(true)
  })
})

test('the preset key is never absent while a second server starts with it', async () => {
  const store = openStore()
  const find = store.apiKeys.find.bind(store.apiKeys)
  const removed: string[] = []
  // The first server adds the key just after the second one has looked for it.
  store.apiKeys.find = async () => {
    store.apiKeys.find = find
    await store.start({ apiKey: 'key A' })
    store.apiKeys.remove = async (_userId, name) => removed.push(name) > 0
    return undefined
  }
  await store.start({ apiKey: 'key A' })

  expect([removed, store.apiKeys.kept.map(({ key }) => key.name)]).toEqual([[], ['preset']])
})
