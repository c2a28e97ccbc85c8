// spec.md 5, "Accepted carriers of credentials": how each may be written. What they open is in carrier-matrix.test.ts, and
// which decides in carriers-precedence.test.ts.
import { afterAll, describe, expect, test } from 'bun:test'
import { identity, startApi } from '../support/api/api-server.ts'
import { testAdminPassword, testApiKey } from '../support/basics/test-project.ts'
import { basic } from '../support/server/test-server.ts'

const server = await startApi({ BERTH_AUTH__FAILURE_BURST: '1000000' })
afterAll(() => server.stop())

const login = await server.ask('POST', `${identity}/token/auth`, {
  key: 'none',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ username: 'admin', password: testAdminPassword }),
})
const token = login.json<{ access_token: string }>().access_token

function askWith({ headers = {}, query = '' }: { headers?: Readonly<Record<string, string>>; query?: string }) {
  return server.ask('GET', query === '' ? '/v2/' : `/v2/?${query}`, { key: 'none', headers })
}

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
    ['the name of a user and the password of another', basic('other', testAdminPassword)],
    ['the name of a user and a key of another', basic('other', testApiKey)],
    ['the user name in capitals', basic('APIKEY', testApiKey)],
    ['the letters of an empty Basic in another case', 'Basic OG=='],
    [
      'letters that are no UTF-8',
      `Basic ${Buffer.from([0x61, 0x70, 0x69, 0x6b, 0x65, 0x79, 0x3a, 0xff]).toString('base64')}`,
    ],
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
    expect((await askWith({ headers: { ...good, authorization } })).status).toBe(401)
  })

  test.each([
    ['nothing', ''],
    ['a changed key', `${testApiKey}x`],
    ['a token', token],
  ])('apiKey in the query with %s', async (_, key) => {
    expect((await askWith({ query: `apiKey=${key}` })).status).toBe(401)
  })

  test('an empty apiKey in the query, before a good cookie', async () => {
    expect((await askWith({ query: 'apiKey=', headers: { cookie: `svc-auth=${token}` } })).status).toBe(401)
  })
})

describe('how a carrier may be written', () => {
  test.each([
    ['the scheme in any case', { authorization: `bEARER ${token}` }],
    [
      'an empty Basic, which clients send that were given nothing',
      { authorization: basic('', ''), 'x-api-key': testApiKey },
    ],
    ['the name and password of a user', { authorization: basic('admin', testAdminPassword) }],
    ['the name of a user and a key of that user', { authorization: basic('admin', testApiKey) }],
    ['the scheme Basic in any case', { authorization: basic('apikey', testApiKey).replace('Basic', 'BASIC') }],
    ['the cookie among others', { cookie: `theme=dark; svc-auth=${token}; lang=en` }],
  ])('%s', async (_, headers) => {
    expect((await askWith({ headers })).status).toBe(200)
  })

  test.each([
    ['a cookie whose name only ends so', { cookie: `not-svc-auth=${token}` }],
    ['a cookie of the name in capitals', { cookie: `SVC-AUTH=${token}` }],
    ['an API key in the cookie', { cookie: `svc-auth=${testApiKey}` }],
  ])('not as %s', async (_, headers) => {
    expect((await askWith({ headers })).status).toBe(401)
  })

  test('not as another spelling of the query parameter', async () => {
    expect((await askWith({ query: `apikey=${testApiKey}` })).status).toBe(401)
  })
})
