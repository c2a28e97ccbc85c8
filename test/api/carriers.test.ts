// spec.md 5, "Accepted carriers of credentials"; decisions.md 5: the first present decides.
import { afterAll, describe, expect, test } from 'bun:test'
import { type ApiServer, api, identity, startApi } from '../support/api-server.ts'
import { testAdminPassword, testApiKey } from '../support/berth-process.ts'
import { basic } from '../support/test-server.ts'

const server = await startApi()
afterAll(() => server.stop())

async function tokenOf(one: ApiServer): Promise<string> {
  const body = JSON.stringify({ username: 'admin', password: testAdminPassword })
  const headers = { 'content-type': 'application/json' }
  const reply = await one.ask('POST', `${identity}/token/auth`, { key: 'none', headers, body })
  return reply.json<{ access_token: string }>().access_token
}
const token = await tokenOf(server)
const foreign = await startApi()
const foreignToken = await tokenOf(foreign)
await foreign.stop()

interface Carried {
  readonly headers?: Readonly<Record<string, string>>
  readonly query?: string
}
const sameOrigin = { 'sec-fetch-site': 'same-origin' }

/** In the order in which they decide; `place` is what they take up in a request. */
const carriers: readonly (readonly [string, string, (isGood: boolean) => Carried])[] = [
  [
    'a Bearer token',
    'authorization',
    (good) => ({ headers: { authorization: `Bearer ${good ? token : foreignToken}` } }),
  ],
  [
    'Basic with an API key',
    'authorization',
    (good) => ({ headers: { authorization: basic('apikey', good ? testApiKey : 'wrong') } }),
  ],
  [
    'Basic with a token',
    'authorization',
    (good) => ({ headers: { authorization: basic('bearer', good ? token : foreignToken) } }),
  ],
  ['X-API-KEY', 'x-api-key', (good) => ({ headers: { 'x-api-key': good ? testApiKey : 'wrong' } })],
  ['the query parameter apiKey', 'query', (good) => ({ query: `apiKey=${good ? testApiKey : 'wrong'}` })],
  [
    'the cookie svc-auth',
    'cookie',
    (good) => ({ headers: { ...sameOrigin, cookie: `svc-auth=${good ? token : foreignToken}` } }),
  ],
]

/** A sample: each kind of access, safe and unsafe. */
const asked = [
  ['GET', '/v2/', 200],
  ['GET', `${api}/v2/`, 200],
  ['GET', '/v2/_catalog', 200],
  ['POST', '/v2/carried/app/blobs/uploads/', 202],
  ['GET', `${api}/stats`, 200],
  ['POST', `${api}/enable`, 200],
  ['GET', `${identity}/me`, 200],
] as const

function askWith(method: string, path: string, ...carried: readonly Carried[]) {
  const query = carried.flatMap((one) => one.query ?? []).join('&')
  const headers = Object.assign({}, ...carried.map((one) => one.headers ?? {}))
  return server.ask(method, query === '' ? path : `${path}?${query}`, { key: 'none', headers })
}

describe.each(carriers)('%s', (_, _place, carry) => {
  test.each(asked)('that is good opens %s %s', async (method, path, status) => {
    expect((await askWith(method, path, carry(true))).status).toBe(status)
  })

  test.each(asked)('that is wrong is 401 for %s %s', async (method, path) => {
    const reply = await askWith(method, path, carry(false))

    expect([reply.status, reply.headers.get('www-authenticate')]).toEqual([401, 'Basic realm="Berth", charset="UTF-8"'])
  })
})

const pairs = carriers.flatMap(([first, firstPlace, carryFirst], index) =>
  carriers
    .slice(index + 1)
    .filter(([, secondPlace]) => secondPlace !== firstPlace)
    .map(([second, , carrySecond]) => [first, second, carryFirst, carrySecond] as const),
)

describe('the first carrier that is present decides', () => {
  test.each(pairs)('%s that is good, before a wrong %s', async (_, _second, carryFirst, carrySecond) => {
    expect((await askWith('GET', '/v2/', carryFirst(true), carrySecond(false))).status).toBe(200)
  })

  test.each(pairs)('%s that is wrong, before a good %s', async (_, _second, carryFirst, carrySecond) => {
    expect((await askWith('GET', '/v2/', carryFirst(false), carrySecond(true))).status).toBe(401)
  })
})

describe('a carrier that holds no credential at all is wrong, not absent', () => {
  const good = { 'x-api-key': testApiKey }

  test.each([
    ['a scheme alone', 'Bearer'],
    ['a scheme and a space', 'Bearer '],
    ['Basic without anything', 'Basic'],
    ['Basic with what is not base64', 'Basic !!!'],
    ['Basic without a colon', 'Basic YXBpa2V5'],
    ['an empty API key', basic('apikey', '')],
    ['an API key without a user name', basic('', testApiKey)],
    ['the name and password of a user', basic('admin', testAdminPassword)],
    ['the user name in capitals', basic('APIKEY', testApiKey)],
    ['an API key as a token', basic('bearer', testApiKey)],
    ['a token as an API key', basic('apikey', token)],
    ['an API key as a Bearer token', `Bearer ${testApiKey}`],
    ['another scheme', `Digest ${testApiKey}`],
    ['no scheme', testApiKey],
    ['a changed token', `Bearer ${token}x`],
    ['a token without its signature', `Bearer ${token.split('.').slice(0, 2).join('.')}.`],
    ['a token without its header', `Bearer ${token.split('.').slice(1).join('.')}`],
    ['a token that is far too long', `Bearer ${'x'.repeat(9_000)}`],
  ])('Authorization with %s', async (_, authorization) => {
    expect((await askWith('GET', '/v2/', { headers: { ...good, authorization } })).status).toBe(401)
  })

  test.each([
    ['nothing', ''],
    ['a changed key', `${testApiKey}x`],
    ['a token', token],
  ])('apiKey in the query with %s', async (_, key) => {
    expect((await askWith('GET', '/v2/', { query: `apiKey=${key}` })).status).toBe(401)
  })

  test('an empty apiKey in the query, before a good cookie', async () => {
    const cookie = { headers: { cookie: `svc-auth=${token}` } }

    expect((await askWith('GET', '/v2/', { query: 'apiKey=' }, cookie)).status).toBe(401)
  })
})

describe('how a carrier may be written', () => {
  test.each([
    ['the scheme in any case', { authorization: `bEARER ${token}` }],
    ['the scheme Basic in any case', { authorization: basic('apikey', testApiKey).replace('Basic', 'BASIC') }],
    ['the cookie among others', { cookie: `theme=dark; svc-auth=${token}; lang=en` }],
  ])('%s', async (_, headers) => {
    expect((await askWith('GET', '/v2/', { headers })).status).toBe(200)
  })

  test.each([
    ['a cookie whose name only ends so', { cookie: `not-svc-auth=${token}` }],
    ['a cookie of the name in capitals', { cookie: `SVC-AUTH=${token}` }],
    ['an API key in the cookie', { cookie: `svc-auth=${testApiKey}` }],
  ])('not as %s', async (_, headers) => {
    expect((await askWith('GET', '/v2/', { headers })).status).toBe(401)
  })

  test('not as another spelling of the query parameter', async () => {
    expect((await askWith('GET', '/v2/', { query: `apikey=${testApiKey}` })).status).toBe(401)
  })
})
