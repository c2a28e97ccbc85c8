// getApiKeys, postApiKey, deleteApiKey: the keys of the embedded identity service's users.
import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { identity, startApi } from '../../support/api/api-server.ts'
import { json, makeKey, makeUser, type ShownKey, usersPath } from '../../support/api/managed-users.ts'

const server = await startApi({ BERTH_LIMITS__KEYS_PER_USER: '3' })
afterAll(() => server.stop())

let made = 0
let user = ''
let keysPath = ''

beforeEach(async () => {
  made += 1
  user = `user-${made}`
  keysPath = `${usersPath}/${user}/keys`
  await makeUser(server, user, { roles: ['writer'] })
})

const post = (body: unknown) => server.ask('POST', keysPath, json(body))
const list = async () => (await server.ask('GET', keysPath)).json<{ keys: ShownKey[] }>().keys
const wantsTime = 'expiresAt: must be a time with its zone, such as 2030-01-31T12:00:00Z'
const wantsPattern = 'repositories[0]: must be the name of a repository, with * for any text'

describe('postApiKey', () => {
  test('makes a key without limits, shows it, and says where it can be revoked', async () => {
    const reply = await post({ name: 'laptop' })

    expect([reply.status, reply.json()]).toEqual([
      201,
      {
        name: 'laptop',
        key: expect.stringMatching(/^berth_[\w-]{43}$/),
        expiresAt: null,
        rights: null,
        repositories: null,
      },
    ])
    expect([reply.headers.get('location'), reply.headers.get('cache-control')]).toEqual([
      `${keysPath}/laptop`,
      'no-store',
    ])
    expect((await server.ask('DELETE', reply.headers.get('location') ?? '')).status).toBe(204)
  })

  test('makes a key with all limits, which is listed with them, and converts a time of another zone', async () => {
    const limits = { rights: ['pull', 'push'], repositories: ['team/*', 'one/app'] }
    const reply = await post({ name: 'robot', ...limits, expiresAt: '2999-01-31T12:00:00+02:00' })
    const shown = { name: 'robot', ...limits, expiresAt: '2999-01-31T10:00:00.000Z' }

    expect(reply.json()).toMatchObject(shown)
    expect(await list()).toMatchObject([{ ...shown, lastUsedAt: null }])
  })

  test('creates a key that works, with the rights of its user', async () => {
    const key = await makeKey(server, user)

    expect((await server.ask('GET', `${identity}/me`, { key })).json()).toMatchObject({ user, roles: ['writer'] })
  })

  test('shows the key this once: no list has it, nor a part of it', async () => {
    const key = await makeKey(server, user)
    const replies = [await server.ask('GET', keysPath), await server.ask('GET', `${usersPath}/${user}`)]

    for (const { text } of replies) {
      expect(text).not.toContain(key)
      expect(text).not.toContain(key.slice(6, 20))
      expect(text).not.toContain(new Bun.CryptoHasher('sha256', key).digest('hex').slice(0, 12))
    }
  })

  test('refuses a name that the user’s keys have, and lets another user have it', async () => {
    const key = await makeKey(server, user)
    const reply = await post({ name: 'laptop' })
    await makeUser(server, `${user}-b`)

    expect([reply.status, reply.json()]).toEqual([409, { msg: 'the user already has a key with this name' }])
    expect((await server.ask('GET', `${identity}/me`, { key })).status).toBe(200)
    await makeKey(server, `${user}-b`)
  })

  test('refuses one key too many, until one is revoked', async () => {
    for (const name of ['one', 'two', 'three']) await makeKey(server, user, { name })
    const reply = await post({ name: 'four' })

    expect([reply.status, reply.json()]).toEqual([
      409,
      { msg: 'the user has reached the limit of keys (limits.keys_per_user)' },
    ])
    await server.ask('DELETE', `${keysPath}/two`)
    await makeKey(server, user, { name: 'four' })
  })

  test.each([
    ['no name', {}, 'name: '],
    ['a name that cannot be', { name: 'a/b' }, 'name: '],
    ['the name of the configuration’s key', { name: 'preset' }, 'name: '],
    ['an end in the past', { name: 'k', expiresAt: '2001-01-31T12:00:00Z' }, 'expiresAt: must be in the future'],
    ['an end that is only a day', { name: 'k', expiresAt: '2999-01-31' }, wantsTime],
    ['an end without a zone', { name: 'k', expiresAt: '2999-01-31T12:00:00' }, wantsTime],
    ['an end on no day', { name: 'k', expiresAt: '2999-02-31T25:00:00Z' }, wantsTime],
    ['an end that is a number', { name: 'k', expiresAt: 32_000_000_000_000 }, 'expiresAt: '],
    ['an end in words', { name: 'k', expiresAt: 'tomorrow' }, wantsTime],
    ['an empty end', { name: 'k', expiresAt: '' }, wantsTime],
    [
      'a right that there is not',
      { name: 'k', rights: ['pull', 'fly'] },
      'rights[1]: must be one of pull, push, delete, operate',
    ],
    ['rights that are no list', { name: 'k', rights: 'pull' }, 'rights: '],
    ['a repository that cannot be', { name: 'k', repositories: ['Team/*'] }, wantsPattern],
    ['a repository that is no text', { name: 'k', repositories: [1] }, 'repositories[0]: '],
    ['an empty repository', { name: 'k', repositories: [''] }, wantsPattern],
    [
      'too many repositories',
      { name: 'k', repositories: Array.from({ length: 65 }, (_, at) => `r${at}`) },
      'repositories',
    ],
    ['an unknown member', { name: 'k', key: 'chosen by the caller' }, 'key: is not a member'],
    ['a user', { name: 'k', user: 'admin' }, 'user: is not a member'],
    ['no object', 'k', ''],
  ])('answers 400 to %s, names the field and what is allowed, and makes none', async (_, body, message) => {
    const reply = await post(body)

    expect([reply.status, reply.json()]).toEqual([400, { msg: expect.stringContaining(message) }])
    expect(await list()).toEqual([])
  })

  test('makes a key without any rights if the limits are empty', async () => {
    const nowhere = await makeKey(server, user, { name: 'nowhere', repositories: [] })
    const nothing = await makeKey(server, user, { name: 'nothing', rights: [] })

    expect((await server.ask('GET', '/v2/one/app/tags/list', { key: nowhere })).status).toBe(403)
    expect((await server.ask('GET', '/v2/one/app/tags/list', { key: nothing })).status).toBe(403)
    expect((await server.ask('GET', `${identity}/me`, { key: nothing })).json()).toMatchObject({ rights: [] })
  })
})

describe('getApiKeys', () => {
  test('lists the keys of one user by name, none of another’s', async () => {
    for (const name of ['robot', 'laptop']) await makeKey(server, user, { name })
    await makeUser(server, `${user}-b`)
    await makeKey(server, `${user}-b`, { name: 'other' })
    const keys = await list()

    expect(keys.map(({ name }) => name)).toEqual(['laptop', 'robot'])
    expect(Object.keys(keys[0] ?? {}).toSorted()).toEqual([
      'createdAt',
      'expiresAt',
      'lastUsedAt',
      'name',
      'repositories',
      'rights',
    ])
    expect(Math.abs(Date.parse(keys[0]?.createdAt ?? '') - Date.now())).toBeLessThan(60_000)
  })

  test('must not be cached', async () => {
    expect((await server.ask('GET', keysPath)).headers.get('cache-control')).toBe('no-store')
  })
})

describe('deleteApiKey', () => {
  test('answers 204 without a body, and the key is in no list', async () => {
    await makeKey(server, user)
    const reply = await server.ask('DELETE', `${keysPath}/laptop`)

    expect([reply.status, reply.text, await list()]).toEqual([204, '', []])
  })

  test('answers 404 with {msg} for a key that is not there, or not there any more', async () => {
    await makeKey(server, user)
    await server.ask('DELETE', `${keysPath}/laptop`)
    const replies = [await server.ask('DELETE', `${keysPath}/laptop`), await server.ask('DELETE', `${keysPath}/never`)]

    for (const reply of replies) expect([reply.status, reply.json()]).toEqual([404, { msg: 'no such key' }])
  })
})

test.each([
  ['GET', ''],
  ['POST', ''],
  ['DELETE', '/laptop'],
])('%s of the keys%s of an unknown user is 404', async (method, rest) => {
  const question = method === 'POST' ? json({ name: 'k' }) : {}
  const reply = await server.ask(method, `${usersPath}/nobody/keys${rest}`, question)

  expect([reply.status, reply.json()]).toEqual([404, { msg: 'no such user' }])
})
