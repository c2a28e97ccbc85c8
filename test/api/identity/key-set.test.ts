// getKeySet with a third-party library: the published keys verify the tokens of /token/auth.
import { afterAll, describe, expect, test } from 'bun:test'
import { createRemoteJWKSet, jwtVerify } from 'jose'
import { identity, ownHeaders, startApi } from '../../support/api/api-server.ts'
import { testAdminPassword } from '../../support/basics/test-project.ts'

const [server, other] = [await startApi(), await startApi()]
afterAll(() => Promise.all([server.stop(), other.stop()]))

const rules = { issuer: 'berth', audience: 'berth', algorithms: ['EdDSA'], typ: 'JWT' }

async function logIn(at = server): Promise<{ access_token: string; scope: string }> {
  const body = JSON.stringify({ username: 'admin', password: testAdminPassword })
  const headers = { 'content-type': 'application/json' }
  return (await at.ask('POST', `${identity}/token/auth`, { key: 'none', headers, body })).json()
}

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
    const { access_token, scope } = await logIn()
    const keys = createRemoteJWKSet(new URL(`${server.url}${identity}/jwks.json`))
    const { payload, protectedHeader } = await jwtVerify(access_token, keys, rules)

    expect(payload).toMatchObject({ sub: 'admin', scope, roles: ['admin'] })
    expect(protectedHeader.kid).toBeString()
  })

  test('do not check the token of another Berth (the control)', async () => {
    const keys = createRemoteJWKSet(new URL(`${server.url}${identity}/jwks.json`))
    const { access_token } = await logIn(other)

    expect(await jwtVerify(access_token, keys, rules).catch((error: { code: string }) => error.code)).toBe(
      'ERR_JWKS_NO_MATCHING_KEY',
    )
  })
})
