// What is changed about a user or a key holds from the next request on, although the server remembers whom it met.
import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { identity, startApi } from '../../support/api/api-server.ts'
import { bearer, json, logIn, makeKey, makeUser, password, usersPath } from '../../support/api/managed-users.ts'

const server = await startApi({ BERTH_IDENTITY__CACHE: '60s', BERTH_AUTH__FAILURE_BURST: '1000' })
afterAll(() => server.stop())

const newPassword = 'another password of a user'
let made = 0
let user = ''

beforeEach(async () => {
  made += 1
  user = `user-${made}`
  await makeUser(server, user, { roles: ['writer'], password })
})

async function patch(change: Readonly<Record<string, unknown>>): Promise<void> {
  expect((await server.ask('PATCH', `${usersPath}/${user}`, json(change))).status).toBe(200)
}

const statusWith = async (credentials: object, path = `${identity}/me`, method = 'GET') =>
  (await server.ask(method, path, credentials)).status

describe('a user who is disabled', () => {
  test('is refused with the key and the token that worked before, and cannot log in', async () => {
    const [key, token] = [await makeKey(server, user), await logIn(server, user)]
    const both = async () => [await statusWith({ key }), await statusWith(bearer(token))]
    expect(await both()).toEqual([200, 200])
    await patch({ disabled: true })

    expect(await both()).toEqual([401, 401])
    expect(await logIn(server, user).catch((error: Error) => error.message)).toContain('401')
    // Enabled again, the user has the key, and needs a new token.
    await patch({ disabled: false })
    expect(await both()).toEqual([200, 401])
    expect(await statusWith(bearer(await logIn(server, user)))).toBe(200)
  })
})

describe('a new password', () => {
  test('ends the tokens of before and the login with the old one, but no keys nor tokens of other users', async () => {
    await makeUser(server, `${user}-b`, { password })
    const [key, token, other] = [
      await makeKey(server, user),
      await logIn(server, user),
      await logIn(server, `${user}-b`),
    ]
    expect(await statusWith(bearer(token))).toBe(200)
    await patch({ password: newPassword })

    expect([await statusWith(bearer(token)), await statusWith({ key }), await statusWith(bearer(other))]).toEqual([
      401, 200, 200,
    ])
    expect(await logIn(server, user).catch((error: Error) => error.message)).toContain('401')
    expect(await statusWith(bearer(await logIn(server, user, newPassword)))).toBe(200)
  })
})

describe('other roles', () => {
  test('give and take rights, for keys and for tokens', async () => {
    const [key, token] = [await makeKey(server, user), await logIn(server, user)]
    const uploads = `/v2/team/app/blobs/uploads/`
    const both = async (path: string, method: string) => [
      await statusWith({ key }, path, method),
      await statusWith(bearer(token), path, method),
    ]
    expect(await both(uploads, 'POST')).toEqual([202, 202])

    await patch({ roles: ['reader'] })
    expect(await both(uploads, 'POST')).toEqual([403, 403])
    expect(await both('/v2/_catalog', 'GET')).toEqual([200, 200])

    await patch({ roles: [] })
    expect(await both('/v2/_catalog', 'GET')).toEqual([403, 403])
    expect(await both(`${identity}/me`, 'GET')).toEqual([200, 200])

    await patch({ roles: ['admin'] })
    expect(await both(usersPath, 'GET')).toEqual([200, 200])
  })
})

describe('a key that is revoked', () => {
  test('is refused from the next request on, also when its name is given again, and no other key is', async () => {
    const keys = [await makeKey(server, user), await makeKey(server, user, { name: 'robot' })]
    for (const key of keys) expect(await statusWith({ key })).toBe(200)
    expect(await statusWith({}, `${usersPath}/${user}/keys/laptop`, 'DELETE')).toBe(204)

    expect(await Promise.all(keys.map((key) => statusWith({ key })))).toEqual([401, 200])
    const again = await makeKey(server, user)
    expect([await statusWith({ key: keys[0] }), await statusWith({ key: again })]).toEqual([401, 200])
  })
})

test('a key that did not exist when it was tried works as soon as it does', async () => {
  const key = 'berth_0000000000000000000000000000000000000000000'
  expect(await statusWith({ key })).toBe(401)
  const real = await makeKey(server, user)

  expect(await statusWith({ key: real })).toBe(200)
})

test('a key with an end is over when it says, though it is remembered', async () => {
  const key = await makeKey(server, user, { expiresAt: new Date(Date.now() + 1_500).toISOString() })
  expect(await statusWith({ key })).toBe(200)
  const [{ expiresAt } = { expiresAt: '' }] = (await server.ask('GET', `${usersPath}/${user}/keys`)).json<{
    keys: { expiresAt: string }[]
  }>().keys
  await Bun.sleep(Math.max(0, Date.parse(expiresAt) - Date.now()) + 1)

  expect(await statusWith({ key })).toBe(401)
})
