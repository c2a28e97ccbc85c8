// postToken and getKeySet: spec.md 5, "Obtaining a bearer token". Refused logins are in logins-refused.test.ts.
import { afterAll, describe, expect, test } from 'bun:test'
import { createRemoteJWKSet, jwtVerify } from 'jose'
import { identity, ownHeaders, startApi } from '../../support/api/api-server.ts'
import { bearer, logIn } from '../../support/api/managed-users.ts'
import { testAdminPassword } from '../../support/basics/test-project.ts'

const server = await startApi({ BERTH_AUTH__FAILURE_BURST: '1000' })
afterAll(() => server.stop())

const json = { 'content-type': 'application/json' }
const credentials = { username: 'admin', password: testAdminPassword }
const ask = (body: string, headers: Readonly<Record<string, string>> = json) =>
  server.ask('POST', `${identity}/token/auth`, { key: 'none', body, headers })

test('a login is answered with a token that opens the registry, in exactly the four fields of spec.md', async () => {
  const ignored = { grant_type: 'password', scope: 'x', remember: true, nested: { a: [1] }, __proto__: null }
  const reply = await ask(JSON.stringify({ ...ignored, ...credentials }))
  const { access_token, scope } = reply.json<{ access_token: string; scope: string }>()
  const claims = JSON.parse(Buffer.from(access_token.split('.')[1] ?? '', 'base64url').toString())

  expect([reply.status, reply.json()]).toEqual([
    200,
    {
      access_token,
      scope: expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/),
      token_type: 'Bearer',
      expires_in: 86_400,
    },
  ])
  expect([ownHeaders(reply), reply.headers.get('cache-control')]).toEqual([
    ['cache-control', 'content-length', 'content-type'],
    'no-store',
  ])
  expect([claims.scope, claims.exp - claims.iat]).toEqual([scope, 86_400])
  expect(Math.abs(claims.iat * 1000 - Date.now())).toBeLessThan(60_000)
  expect((await server.ask('GET', '/v2/', bearer(access_token))).status).toBe(200)
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
])('a login answers 400 with {msg} to %s', async (_, body) => {
  const reply = await ask(body)

  expect([reply.status, reply.json()]).toEqual([400, { msg: expect.any(String) }])
})

test.each(['application/x-www-form-urlencoded', 'text/plain'])(
  'a login of the content type %s is 400',
  async (type) => {
    expect((await ask(JSON.stringify(credentials), { 'content-type': type })).status).toBe(400)
  },
)

test('the identity service is not at the version of the registry, nor the registry at its', async () => {
  for (const path of ['/api/2023-12-28/me', `${identity}/stats`, `${identity}/v2/`]) {
    expect([path, (await server.ask('GET', path)).status]).toEqual([path, 404])
  }
})

const rules = { issuer: 'berth', audience: 'berth', algorithms: ['EdDSA'], typ: 'JWT' }

describe('the published keys', () => {
  test('can be read without credentials, and cached for five minutes', async () => {
    const reply = await server.ask('GET', `${identity}/jwks.json`, { key: 'none' })

    expect([reply.status, reply.headers.get('cache-control')]).toEqual([200, 'public, max-age=300'])
    expect(ownHeaders(reply)).toEqual(['cache-control', 'content-length', 'content-type'])
  })

  test('hold nothing that is secret', async () => {
    const { keys } = (await server.ask('GET', `${identity}/jwks.json`)).json<{ keys: object[] }>()

    expect(keys.map((key) => Object.keys(key).toSorted())).toEqual([['alg', 'crv', 'kid', 'kty', 'use', 'x']])
  })

  test('check a token that the server gave, when they are fetched by the library', async () => {
    const access_token = await logIn(server, 'admin', testAdminPassword)
    const keys = createRemoteJWKSet(new URL(`${server.url}${identity}/jwks.json`))
    const { payload, protectedHeader } = await jwtVerify(access_token, keys, rules)

    expect(payload).toMatchObject({ sub: 'admin', roles: ['admin'] })
    expect(protectedHeader.kid).toBeString()
  })

  test('do not check the token of another Berth (the control)', async () => {
    const other = await startApi()
    const keys = createRemoteJWKSet(new URL(`${server.url}${identity}/jwks.json`))
    const access_token = await logIn(other, 'admin', testAdminPassword)
    await other.stop()

    expect(await jwtVerify(access_token, keys, rules).catch((error: { code: string }) => error.code)).toBe(
      'ERR_JWKS_NO_MATCHING_KEY',
    )
  })
})
