// getMe for each kind of caller: what another Berth, or a person, learns about the caller.
import { afterAll, describe, expect, test } from 'bun:test'
import { identity, startApi } from '../../support/api/api-server.ts'
import { bearer, logIn, makeKey, makeUser, password } from '../../support/api/managed-users.ts'

const server = await startApi()
afterAll(() => server.stop())

const account = (await server.ask('GET', `${identity}/me`)).json<{ account: string }>().account
await makeUser(server, 'ann', { roles: ['writer', 'a-role-that-gives-nothing'], password })
const ann = { user: 'ann', account, scope: account, roles: ['writer', 'a-role-that-gives-nothing'] }

describe('getMe', () => {
  test('tells of an administrator with a key: all rights, everywhere', async () => {
    const reply = await server.ask('GET', `${identity}/me`)

    expect(reply.headers.get('cache-control')).toBe('no-store')
    expect(reply.json()).toEqual({
      user: 'admin',
      account,
      scope: account,
      roles: ['admin'],
      rights: ['pull', 'push', 'delete', 'operate'],
    })
  })

  test('tells of a user with a key, and with a token, the same', async () => {
    const expected = { ...ann, rights: ['pull', 'push', 'delete'] }
    const key = await makeKey(server, 'ann', { name: 'plain' })

    expect((await server.ask('GET', `${identity}/me`, { key })).json()).toEqual(expected)
    expect((await server.ask('GET', `${identity}/me`, bearer(await logIn(server, 'ann')))).json()).toEqual({
      ...expected,
      expiresAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
    })
  })

  test.each([
    ['rights', { rights: ['pull', 'operate'] }, { rights: ['pull'] }],
    ['no rights', { rights: [] }, { rights: [] }],
    [
      'repositories',
      { repositories: ['a/*', 'b'] },
      { rights: ['pull', 'push', 'delete'], repositories: ['a/*', 'b'] },
    ],
    ['no repositories', { repositories: [] }, { rights: ['pull', 'push', 'delete'], repositories: [] }],
    ['both', { rights: ['pull'], repositories: ['a/*'] }, { rights: ['pull'], repositories: ['a/*'] }],
  ])('tells of a key with limits what they are: %s', async (name, limits, expected) => {
    const key = await makeKey(server, 'ann', { name: name.replace(' ', '-'), ...limits })

    expect((await server.ask('GET', `${identity}/me`, { key })).json()).toEqual({
      ...ann,
      // It lists no role: a client that knows only roles must not give the key all rights of its user.
      roles: [],
      userRoles: ann.roles,
      ...expected,
    })
  })

  test('tells of a key that is limited to less than it has no use for, which roles it has in full', async () => {
    await makeUser(server, 'eve', { roles: ['reader', 'writer', 'a-role-that-gives-nothing'] })
    const key = await makeKey(server, 'eve', { name: 'pulls', rights: ['pull'], expiresAt: '2999-01-01T00:00:00Z' })

    expect((await server.ask('GET', `${identity}/me`, { key })).json()).toMatchObject({
      roles: ['reader'],
      userRoles: ['reader', 'writer', 'a-role-that-gives-nothing'],
      rights: ['pull'],
      expiresAt: '2999-01-01T00:00:00.000Z',
    })
  })

  test('never tells of the credential itself', async () => {
    const key = await makeKey(server, 'ann', { name: 'canary' })
    const reply = await server.ask('GET', `${identity}/me`, { key })

    expect(reply.text + JSON.stringify([...reply.headers])).not.toContain(key)
  })
})
