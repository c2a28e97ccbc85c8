// Docker's token specification: what a client gets for its credentials, where `auth.challenge` is `bearer`.
import { afterAll, describe, expect, test } from 'bun:test'
import { api, mounts, type Question } from '../../support/api/api-server.ts'
import { addPerson } from '../../support/api/people.ts'
import {
  askForToken,
  bearing,
  claimsOf,
  fetchToken,
  type IssuedToken,
  loginToken,
  startBearerApi,
} from '../../support/api/scoped-tokens.ts'
import { testApiKey } from '../../support/basics/test-project.ts'
import { basic } from '../../support/server/test-server.ts'

const server = await startBearerApi()
afterAll(() => server.stop())
const reader = await addPerson(server, { name: 'rita', roles: ['reader'] })
const limited = await addPerson(server, {
  name: 'lou',
  roles: ['writer'],
  limits: { rights: ['pull', 'push'], repositories: ['team/*' as never] },
})

const scope = 'repository:team/app:pull,push'
const basicChallenge = 'Basic realm="Berth", charset="UTF-8"'

function askCarrying({ query, headers = {} }: Question & { readonly query?: string }, more = '') {
  const path = `/v2/_token?scope=${scope}${more}${query === undefined ? '' : `&${query}`}`
  return server.ask('GET', path, { headers, key: 'none' })
}

test('an anonymous caller is asked for credentials, not for a token', async () => {
  const reply = await askForToken(server, [scope], { key: 'none' })

  expect([reply.status, reply.headers.get('www-authenticate')]).toEqual([401, basicChallenge])
})

describe('the answer', () => {
  test('has all that clients look for', async () => {
    const before = Date.now()
    const reply = await askForToken(server, [scope])
    const issued = reply.json<IssuedToken>()

    expect(issued).toEqual({
      token: expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+$/),
      access_token: issued.token,
      token_type: 'Bearer',
      expires_in: 900,
      issued_at: expect.stringMatching(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/),
      scope,
    })
    expect(Date.parse(issued.issued_at)).toBeGreaterThanOrEqual(before)
    expect(Date.parse(issued.issued_at)).toBeLessThanOrEqual(Date.now())
    expect(reply.headers.get('cache-control')).toBe('no-store')
    expect(reply.headers.get('content-type')).toBe('application/json')
  })

  test('is the same kind for every parameter that clients send along', async () => {
    const more = '&service=Berth&account=apikey&client_id=docker&offline_token=true&access_type=offline&n=1'
    const issued = (await askCarrying({ headers: { 'x-api-key': testApiKey } }, more)).json<IssuedToken>()

    expect(issued.scope).toBe(scope)
    // Nothing to keep: a client that asks for an offline token goes on with its credentials.
    expect(Object.keys(issued)).not.toContain('refresh_token')
  })

  test.each([...mounts])('under %s is good for either mount', async (mount) => {
    const { token } = (await askForToken(server, [scope], {}, mount)).json<IssuedToken>()
    for (const other of mounts) {
      expect((await server.ask('POST', `${other}/team/app/blobs/uploads/`, bearing(token))).status).toBe(202)
    }
  })
})

describe('the scope', () => {
  async function grantedTo(key: string | undefined, ...scopes: readonly string[]): Promise<string> {
    const reply = await askForToken(server, scopes, key === undefined ? {} : { key })
    return reply.status === 200 ? reply.json<IssuedToken>().scope : `${reply.status}`
  }

  test('may be repeated, or several in one', async () => {
    const both = 'repository:one:pull repository:two:pull,push'

    expect(await grantedTo(undefined, 'repository:one:pull', 'repository:two:pull,push')).toBe(both)
    expect(await grantedTo(undefined, both)).toBe(both)
  })

  test('may be absent, as at a login', async () => {
    expect(await grantedTo(undefined)).toBe('')
    const { token } = (await askForToken(server, [])).json<IssuedToken>()
    expect((await server.ask('GET', '/v2/', bearing(token))).status).toBe(200)
  })

  test('may have an unknown form', async () => {
    expect(await grantedTo(undefined, 'a b c', 'repository:NOT VALID:pull', 'repository:app:fly')).toBe('')
  })

  test('that exceeds the rights of the caller is cut to these rights, without an error', async () => {
    expect(await grantedTo(reader, 'repository:app:pull,push,delete')).toBe('repository:app:pull')
    expect(await grantedTo(reader, 'repository:app:push')).toBe('')
    expect(await grantedTo(limited, 'repository:team/app:*', 'repository:other:pull')).toBe(
      'repository:team/app:pull,push',
    )
    expect(await grantedTo(undefined, 'repository:app:*')).toBe('repository:app:pull,push,delete')
  })

  test('of the catalog is told when it was given', async () => {
    expect(await grantedTo(undefined, 'registry:catalog:*')).toBe('registry:catalog:*')
    expect(await grantedTo(limited, 'registry:catalog:* repository:team/app:pull')).toBe(
      'repository:team/app:pull registry:catalog:*',
    )
  })
})

test('no token gives access to the administrative interface', async () => {
  const { token } = await fetchToken(server, 'repository:app:*,operate registry:catalog:*')

  expect(JSON.stringify(claimsOf(token))).not.toContain('operate')
  expect((await server.ask('GET', `${api}/stats`, bearing(token))).status).toBe(401)
})

test('a token for more repositories than fit holds the first of them', async () => {
  const names = Array.from({ length: 64 }, (_, number) => `team/${'x'.repeat(90)}${number}`)
  const issued = await fetchToken(server, names.map((name) => `repository:${name}:pull,push`).join(' '))

  expect(issued.scope.split(' ').length).toBeGreaterThan(15)
  expect((await server.ask('POST', `/v2/${names[0]}/blobs/uploads/`, bearing(issued.token))).status).toBe(202)
})

// OAuth 2 as Docker's token specification has it: containerd asks this way first.
const login = await loginToken(server)
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

    expect([reply.status, reply.headers.get('www-authenticate')]).toEqual([401, basicChallenge])
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
