// postToken and getMe: spec.md 5, "Obtaining a bearer token".
import { afterAll, describe, expect, test } from 'bun:test'
import { identity, ownHeaders, startApi } from '../../support/api/api-server.ts'
import { testAdminPassword } from '../../support/basics/test-project.ts'

const server = await startApi({ BERTH_AUTH__FAILURE_BURST: '1000' })
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

  test('forbids caching of the answer', async () => {
    const reply = await ask(JSON.stringify(credentials))

    expect(reply.headers.get('cache-control')).toBe('no-store')
    expect(ownHeaders(reply)).toEqual(['cache-control', 'content-length', 'content-type'])
  })

  test('ignores unknown members', async () => {
    const more = { grant_type: 'password', scope: 'x', remember: true, nested: { a: [1] }, __proto__: null }
    const reply = await ask(JSON.stringify({ ...more, ...credentials }))

    expect([reply.status, Object.keys(reply.json<Token>()).toSorted()]).toEqual([
      200,
      ['access_token', 'expires_in', 'scope', 'token_type'],
    ])
  })

  test('says in the token what it says beside it', async () => {
    const { access_token, scope } = (await ask(JSON.stringify(credentials))).json<Token>()
    const claims = JSON.parse(Buffer.from(access_token.split('.')[1] ?? '', 'base64url').toString())

    expect(claims.scope).toBe(scope)
    expect(claims.exp - claims.iat).toBe(86_400)
    expect(Math.abs(claims.iat * 1000 - Date.now())).toBeLessThan(60_000)
  })

  test('gives a token that opens the registry', async () => {
    const authorization = `Bearer ${(await ask(JSON.stringify(credentials))).json<Token>().access_token}`

    expect((await server.ask('GET', '/v2/', { key: 'none', headers: { authorization } })).status).toBe(200)
  })

  test.each([
    ['no body', ''],
    ['no JSON', 'username=admin'],
    ['no object', '[]'],
    ['null', 'null'],
    ['no password', '{"username":"admin"}'],
    ['a password that is no string', '{"username":"admin","password":12}'],
    ['far too much', JSON.stringify({ ...credentials, more: 'x'.repeat(9_000) })],
    ['null for a name', '{"username":null,"password":"x"}'],
    ['a list of names', '{"username":["admin"],"password":"x"}'],
  ])('answers 400 with {msg} to %s', async (_, body) => {
    const reply = await ask(body)

    expect([reply.status, reply.json()]).toEqual([400, { msg: expect.any(String) }])
  })

  test.each(['application/x-www-form-urlencoded', 'text/plain'])('answers 400 to the content type %s', async (type) => {
    expect((await ask(JSON.stringify(credentials), { 'content-type': type })).status).toBe(400)
  })
})

describe('getMe', () => {
  test('forbids caching of the answer', async () => {
    expect((await server.ask('GET', `${identity}/me`)).headers.get('cache-control')).toBe('no-store')
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
