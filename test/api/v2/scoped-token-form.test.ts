// OAuth 2 as Docker's token specification has it: containerd asks this way first.
import { afterAll, describe, expect, test } from 'bun:test'
import { mounts, type Question } from '../../support/api/api-server.ts'
import { bearing, type IssuedToken, loginToken, startBearerApi } from '../../support/api/scoped-tokens.ts'
import { testApiKey } from '../../support/basics/test-project.ts'
import { basic } from '../../support/server/test-server.ts'

const server = await startBearerApi()
afterAll(() => server.stop())
const login = await loginToken(server)

const scope = 'repository:team/app:pull,push'
const form = 'application/x-www-form-urlencoded'
const withKey = { grant_type: 'password', username: 'apikey', password: testApiKey }

function post(fields: Readonly<Record<string, string>> | string, { headers = {} }: Question = {}, mount = '/v2') {
  const body = typeof fields === 'string' ? fields : new URLSearchParams(fields).toString()
  return server.ask('POST', `${mount}/_token`, { headers: { 'content-type': form, ...headers }, body, key: 'none' })
}

describe('a form', () => {
  test.each([
    ['an API key', { username: 'apikey', password: testApiKey }],
    ['a token of the identity service', { username: 'bearer', password: login }],
  ])('with %s gets a token that opens the repository', async (_, user) => {
    const reply = await post({
      grant_type: 'password',
      service: 'Berth',
      client_id: 'containerd-client',
      scope,
      ...user,
    })
    const issued = reply.json<IssuedToken>()

    expect([reply.status, issued.access_token, issued.scope]).toEqual([200, issued.token, scope])
    expect(reply.headers.get('cache-control')).toBe('no-store')
    expect((await server.ask('POST', '/v2/team/app/blobs/uploads/', bearing(issued.token))).status).toBe(202)
  })

  test('is taken at both mounts, and with a parameter in its content type', async () => {
    const headers = { 'content-type': `${form}; charset=utf-8` }
    for (const mount of mounts) expect((await post({ ...withKey, scope }, { headers }, mount)).status).toBe(200)
  })

  test('has its scopes in one field, or in several', async () => {
    const both = 'repository:one:pull repository:two:pull'
    const fields = new URLSearchParams(withKey).toString()

    expect((await post({ ...withKey, scope: both })).json<IssuedToken>().scope).toBe(both)
    expect(
      (await post(`${fields}&scope=repository:one:pull&scope=repository:two:pull`)).json<IssuedToken>().scope,
    ).toBe(both)
  })

  test('without a user leaves the word to the other carriers', async () => {
    const asked = { grant_type: 'password', scope }

    expect((await post(asked, { headers: { 'x-api-key': testApiKey } })).status).toBe(200)
    expect((await post(asked, { headers: { authorization: basic('bearer', login) } })).status).toBe(200)
    expect((await post(asked, { headers: { 'x-api-key': 'wrong' } })).status).toBe(401)
    expect((await post(asked)).status).toBe(401)
  })

  test('without a user does not make a cookie of another page good', async () => {
    const headers = { cookie: `svc-auth=${login}`, 'sec-fetch-site': 'cross-site' }

    expect((await post({ grant_type: 'password', scope }, { headers })).status).toBe(403)
  })
})

describe('bad credentials in a form are 401 with the one challenge for credentials', () => {
  test.each([
    ['a wrong key', { username: 'apikey', password: 'wrong' }],
    ['a wrong token', { username: 'bearer', password: `${login}x` }],
    ['a key as a token', { username: 'bearer', password: testApiKey }],
    ['a wrong password', { username: 'admin', password: 'a wrong password' }],
    ['a name that only begins with apikey', { username: 'apikey:x', password: testApiKey }],
    ['no password', { username: 'apikey' }],
    ['no name', { password: testApiKey }],
    ['an empty password', { username: 'apikey', password: '' }],
    ['a key that is far too long', { username: 'apikey', password: 'x'.repeat(20_000) }],
  ])('%s', async (_, user) => {
    const reply = await post({ grant_type: 'password', scope, ...user })

    expect([reply.status, reply.headers.get('www-authenticate')]).toEqual([401, 'Basic realm="Berth", charset="UTF-8"'])
  })

  test('even where a good key stands in a header', async () => {
    const headers = { 'x-api-key': testApiKey }

    expect((await post({ ...withKey, password: 'wrong', scope }, { headers })).status).toBe(401)
  })
})

describe('a body that is not a valid form is 400', () => {
  test.each([
    ['a refresh token', { grant_type: 'refresh_token', refresh_token: 'x', scope }],
    ['client credentials', { ...withKey, grant_type: 'client_credentials' }],
    ['no grant type', { username: 'apikey', password: testApiKey, scope }],
    ['an empty form', ''],
  ])('%s', async (_, fields) => {
    const reply = await post(fields)

    expect(reply.status).toBe(400)
    expect(reply.text).toContain('grant_type must be password')
  })

  const large = `${new URLSearchParams(withKey)}&filler=${'x'.repeat(40_000)}`
  test.each([
    ['of another content type', 'application/json', JSON.stringify(withKey)],
    ['that is too large, as announced', form, large],
    ['that is too large, as sent', form, new Blob([large]).stream()],
  ])('a body %s', async (_, type, body) => {
    const reply = await server.ask('POST', '/v2/_token', { headers: { 'content-type': type }, body, key: 'none' })

    expect(reply.status).toBe(400)
  })
})
