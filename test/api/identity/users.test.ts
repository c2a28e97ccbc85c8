// getUsers, postUser, getUser, patchUser: users of the embedded identity service. For the rights see ../rights.
import { afterAll, describe, expect, test } from 'bun:test'
import { identity, ownHeaders, startApi } from '../../support/api/api-server.ts'
import { json, logIn, makeUser, password, type ShownUser, usersPath } from '../../support/api/managed-users.ts'

const server = await startApi({ BERTH_LIMITS__PAGE_DEFAULT: '4', BERTH_LIMITS__PAGE_MAX: '6' })
afterAll(() => server.stop())

const account = (await server.ask('GET', `${identity}/me`)).json<{ account: string }>().account
const post = (body: unknown) => server.ask('POST', usersPath, json(body))
const patch = (name: string, body: unknown) => server.ask('PATCH', `${usersPath}/${name}`, json(body))
const show = async (name: string) => (await server.ask('GET', `${usersPath}/${name}`)).json<ShownUser>()
let made = 0
const numbered = () => `user-${String(made).padStart(3, '0')}`

function fresh(): string {
  made += 1
  return numbered()
}

describe('postUser', () => {
  test('makes a user of the caller’s account, and says where', async () => {
    const reply = await post({ name: 'ann', roles: ['writer', 'reader'], password })

    expect([reply.status, reply.json()]).toEqual([
      201,
      { name: 'ann', account, roles: ['writer', 'reader'], disabled: false, hasPassword: true },
    ])
    expect(reply.headers.get('location')).toBe(`${usersPath}/ann`)
    expect(reply.headers.get('cache-control')).toBe('no-store')
    expect((await server.ask('GET', reply.headers.get('location') ?? '')).json<ShownUser>()).toEqual(reply.json())
  })

  test('needs nothing but a name, and never shows a password or its hash', async () => {
    const name = fresh()
    const reply = await post({ name: fresh(), password })

    expect(await makeUser(server, name)).toEqual({ name, account, roles: [], disabled: false, hasPassword: false })
    expect(reply.text).not.toContain(password)
    expect(reply.text).not.toContain('argon2')
  })

  test('gives a place that works, though the name holds signs', async () => {
    const reply = await post({ name: 'ci.robot+1@example_host-2' })

    expect((await server.ask('GET', reply.headers.get('location') ?? '')).json<ShownUser>()).toEqual(reply.json())
  })

  test('refuses a name that is taken, and changes nothing', async () => {
    const name = fresh()
    const known = await makeUser(server, name, { roles: ['reader'] })
    const reply = await post({ name, roles: ['admin'], password })

    expect([reply.status, reply.json()]).toEqual([409, { msg: 'a user with this name already exists' }])
    expect(await show(name)).toEqual(known)
  })

  test.each([
    ['no name', { roles: [] }, 'name: is required'],
    ['a name that is no text', { name: 5 }, 'name: '],
    ['an empty name', { name: '' }, 'name: '],
    ['a name with a slash', { name: 'a/b' }, 'name: '],
    ['a name that is too long', { name: 'x'.repeat(129) }, 'name: '],
    ['roles that are no list', { name: 'bad', roles: 'admin' }, 'roles: '],
    ['a role that is no text', { name: 'bad', roles: ['reader', 1] }, 'roles[1]: must be a string'],
    ['a role that cannot be', { name: 'bad', roles: ['reader', 'a b'] }, 'roles[1]: must be 1 to 64 letters, digits'],
    ['too many roles', { name: 'bad', roles: Array.from({ length: 33 }, (_, index) => `r${index}`) }, 'roles: '],
    ['a short password', { name: 'bad', password: 'short' }, 'password: must be 12 to 1024 characters'],
    ['a password that is no text', { name: 'bad', password: 123_456_789_012 }, 'password: '],
    ['a long password', { name: 'bad', password: 'x'.repeat(1_025) }, 'password: '],
    [
      'an unknown member',
      { name: 'bad', admin: true },
      'admin: is not a member of this body, which can have name, roles',
    ],
    ['another account', { name: 'bad', account: 'rival' }, 'account: is not a member'],
    ['a hash in place of a password', { name: 'bad', passwordHash: 'x' }, 'passwordHash: is not a member'],
    ['far too much', { name: 'bad', roles: ['x'.repeat(20_000)] }, ''],
    ['no object', ['bad'], ''],
  ])('answers 400 to %s, names the field and what is allowed, and creates no user', async (_, body, message) => {
    const reply = await post(body)

    expect([reply.status, reply.json()]).toEqual([400, { msg: expect.stringContaining(message) }])
    expect((await server.ask('GET', `${usersPath}/bad`)).status).toBe(404)
  })

  test.each([
    ['another content type', 'text/plain', '{"name":"bad"}', ''],
    [
      'a member that is given twice',
      'application/json',
      '{"name":"bad","roles":[],"roles":["admin"]}',
      'roles: must be given once',
    ],
  ])('answers 400 to %s', async (_, type, body, message) => {
    const reply = await server.ask('POST', usersPath, { headers: { 'content-type': type }, body })

    expect([reply.status, reply.json()]).toEqual([400, { msg: expect.stringContaining(message) }])
    expect((await server.ask('GET', `${usersPath}/bad`)).status).toBe(404)
  })
})

describe('getUsers', () => {
  test('lists page by page, each user once, with a Link that can be followed', async () => {
    for (let count = 0; count < 7; count += 1) await makeUser(server, fresh())
    const seen: string[] = []
    let next: string | undefined = `${usersPath}?n=3`
    while (next !== undefined && seen.length < 100) {
      const reply = await server.ask('GET', next)
      const { users } = reply.json<{ users: ShownUser[] }>()
      expect(users.length).toBeLessThanOrEqual(3)
      seen.push(...users.map(({ name }) => name))
      next = /^<([^>]+)>; rel="next"$/.exec(reply.headers.get('link') ?? '')?.[1]
      expect(next === undefined || next.startsWith(`${usersPath}?`)).toBe(true)
    }

    expect(seen).toEqual([...new Set(seen)].toSorted())
    expect(seen).toEqual(expect.arrayContaining(['admin', 'ann', numbered()]))
  })

  test('shows the same as getUser for each user, and no secret', async () => {
    const reply = await server.ask('GET', `${usersPath}?n=2`)

    expect(reply.json()).toEqual({ users: [await show('admin'), await show('ann')] })
    expect(reply.text).not.toContain('argon2')
    expect(ownHeaders(reply)).toEqual(['cache-control', 'content-length', 'content-type', 'link'])
  })

  test('has a length of its own, and one that it never exceeds', async () => {
    const lengthOf = async (query: string) =>
      (await server.ask('GET', usersPath + query)).json<{ users: unknown[] }>().users.length

    expect([await lengthOf(''), await lengthOf('?n=1'), await lengthOf('?n=100'), await lengthOf('?n=0')]).toEqual([
      4, 1, 6, 0,
    ])
  })

  test('begins after a name, even if no user has it, and ends without a Link', async () => {
    const reply = await server.ask('GET', `${usersPath}?last=zzz`)

    expect([reply.json(), reply.headers.get('link')]).toEqual([{ users: [] }, null])
    const after = (await server.ask('GET', `${usersPath}?n=1&last=admim`)).json<{ users: ShownUser[] }>()
    expect(after.users.map(({ name }) => name)).toEqual(['admin'])
  })

  test.each(['-1', 'x', '1.5', ''])('answers 400 to the length %j', async (n) => {
    expect((await server.ask('GET', `${usersPath}?n=${n}`)).status).toBe(400)
  })
})

describe('getUser', () => {
  test.each(['nobody', 'ANN', 'x'.repeat(500), 'a%27b', '..%2f'])('answers 404 or 400 to %p', async (name) => {
    const { status } = await server.ask('GET', `${usersPath}/${name}`)

    expect(status).toBe(name.includes('%2f') ? 400 : 404)
  })
})

describe('patchUser', () => {
  test.each([
    { roles: ['reader'] },
    { roles: [] },
    { disabled: true },
    { disabled: false },
    { roles: ['writer', 'writer'], disabled: true },
    {},
  ])('with %j changes that and nothing else', async (change) => {
    const name = fresh()
    const known = await makeUser(server, name, { roles: ['reader', 'writer'], password })
    const reply = await patch(name, change)

    const expected = { ...known, ...change }
    expect(reply.status).toBe(200)
    expect(reply.json<ShownUser>()).toEqual({ ...expected, roles: [...new Set(expected.roles)] })
    expect(await show(name)).toEqual(reply.json<ShownUser>())
  })

  test('sets a password, and does not show it', async () => {
    const name = fresh()
    await makeUser(server, name)
    const reply = await patch(name, { password })

    expect(reply.json<ShownUser>().hasPassword).toBe(true)
    expect(reply.text).not.toContain(password)
    expect(await logIn(server, name)).toBeString()
  })

  test.each([
    ['a name', { name: 'other' }],
    ['an account', { account: 'rival' }],
    ['a flag that is none', { disabled: 'true' }],
    ['a flag that is null', { disabled: null }],
    ['roles that are null', { roles: null }],
    ['a password that is null', { password: null }],
    ['roles that are no list', { roles: 'admin' }],
    ['a role that cannot be', { roles: [''] }],
    ['a short password', { password: 'short' }],
    ['something wrong beside something right', { roles: [], password: 'short' }],
    ['no object', null],
  ])('answers 400 with {msg} to %s, and changes nothing', async (_, body) => {
    const name = fresh()
    const known = await makeUser(server, name, { roles: ['reader'], password })
    const reply = await patch(name, body)

    expect([reply.status, reply.json()]).toEqual([400, { msg: expect.any(String) }])
    expect(await show(name)).toEqual(known)
    expect(await logIn(server, name)).toBeString()
  })

  test('answers 404 with {msg} for an unknown user', async () => {
    const reply = await patch('nobody', { roles: [] })

    expect([reply.status, reply.json()]).toEqual([404, { msg: 'no such user' }])
  })
})

test('what the users’ addresses do not know is told as such', async () => {
  const replies = [await server.ask('DELETE', `${usersPath}/ann`), await server.ask('PUT', usersPath)]

  expect(replies.map(({ status, headers }) => [status, headers.get('allow')])).toEqual([
    [405, 'GET, HEAD, PATCH'],
    [405, 'GET, HEAD, POST'],
  ])
  expect((await server.ask('GET', `${usersPath}/ann/`)).status).toBe(404)
})
