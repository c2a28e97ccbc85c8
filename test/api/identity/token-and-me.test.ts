// postToken and getMe: spec.md 5, "Obtaining a bearer token".
import { afterAll, describe, expect, test } from 'bun:test'
import { identity, ownHeaders, startApi } from '../../support/api-server.ts'
import { testAdminPassword } from '../../support/berth-process.ts'

const server = await startApi()
afterAll(() => server.stop())

const json = { 'content-type': 'application/json' }
const credentials = { username: 'admin', password: testAdminPassword }
const ask = (body: string, headers: Readonly<Record<string, string>> = json) =>
  server.ask('POST', `${identity}/token/auth`, { key: 'none', body, headers })

interface Token {
  readonly access_token: string
  readonly scope: string
}

describe('postToken', () => {
  test('answers a token with exactly the four fields of spec.md', async () => {
    const reply = await ask(JSON.stringify(credentials))

    expect(reply.status).toBe(200)
    expect(reply.json()).toEqual({
      access_token: expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+$/),
      scope: expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/),
      token_type: 'Bearer',
      expires_in: 86_400,
    })
  })

  test('lets nobody keep the answer', async () => {
    const reply = await ask(JSON.stringify(credentials))

    expect(reply.headers.get('cache-control')).toBe('no-store')
    expect(ownHeaders(reply)).toEqual(['cache-control', 'content-length', 'content-type'])
  })

  test.each([
    ['a wrong password', { ...credentials, password: 'wrong' }],
    ['an unknown user', { ...credentials, username: 'nobody' }],
  ])('answers 401 in the same words to %s', async (_, wrong) => {
    const reply = await ask(JSON.stringify(wrong))

    expect([reply.status, reply.json()]).toEqual([401, { msg: 'user name or password is wrong' }])
  })

  test.each([
    ['no body', ''],
    ['no JSON', 'username=admin'],
    ['no object', '[]'],
    ['null', 'null'],
    ['no password', '{"username":"admin"}'],
    ['a password that is no string', '{"username":"admin","password":12}'],
    ['far too much', JSON.stringify({ ...credentials, more: 'x'.repeat(5_000) })],
  ])('answers 400 with {msg} to %s', async (_, body) => {
    const reply = await ask(body)

    expect([reply.status, reply.json()]).toEqual([400, { msg: expect.any(String) }])
  })

  test.each(['application/x-www-form-urlencoded', 'text/plain'])('answers 400 to the content type %s', async (type) => {
    expect((await ask(JSON.stringify(credentials), { 'content-type': type })).status).toBe(400)
  })
})

describe('getMe', () => {
  test('answers with the array roles', async () => {
    const reply = await server.ask('GET', `${identity}/me`)

    expect([reply.status, reply.json()]).toMatchObject([200, { roles: ['admin'], user: 'admin' }])
  })

  test('knows the owner of a token, and the account that the token names', async () => {
    const token = (await ask(JSON.stringify(credentials))).json<Token>()
    const reply = await server.ask('GET', `${identity}/me`, {
      key: 'none',
      headers: { authorization: `Bearer ${token.access_token}` },
    })

    expect(reply.json()).toMatchObject({ user: 'admin', scope: token.scope, account: token.scope })
  })

  test('lets nobody keep the answer', async () => {
    expect((await server.ask('GET', `${identity}/me`)).headers.get('cache-control')).toBe('no-store')
  })

  test('answers 401 with {msg} to a stranger', async () => {
    const reply = await server.ask('GET', `${identity}/me`, { key: 'none' })

    expect([reply.status, reply.json()]).toEqual([401, { msg: 'authentication required' }])
  })
})

test('the identity service is not at the version of the registry, nor the registry at its', async () => {
  const replies = [
    await server.ask('GET', '/api/2023-12-28/me'),
    await server.ask('GET', `${identity}/stats`),
    await server.ask('GET', `${identity}/v2/`),
  ]

  expect(replies.map((reply) => reply.status)).toEqual([404, 404, 404])
})
