// decisions.md 5: "A repeated header line: 400", and what a cookie may authorise.
import { afterAll, describe, expect, test } from 'bun:test'
import { api, identity, startApi } from '../support/api-server.ts'
import { testAdminPassword, testApiKey } from '../support/berth-process.ts'
import { askRaw } from '../support/raw-http.ts'
import { basic } from '../support/test-server.ts'

const publicUrl = 'https://registry.example.com'
const server = await startApi()
const published = await startApi({ BERTH_SERVER__PUBLIC_URL: publicUrl })
afterAll(() => Promise.all([server.stop(), published.stop()]))

async function cookieOf(one: typeof server): Promise<string> {
  const reply = await one.ask('POST', `${identity}/token/auth`, {
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ username: 'admin', password: testAdminPassword }),
  })
  return `svc-auth=${reply.json<{ access_token: string }>().access_token}`
}
const cookie = await cookieOf(server)
const publishedCookie = await cookieOf(published)

const good = `Authorization: ${basic('apikey', testApiKey)}`
const key = `X-API-KEY: ${testApiKey}`

describe.each(['/v2/', `${api}/stats`])('credentials given twice to %s are 400', (path) => {
  test.each([
    ['the same Authorization twice', [good, good]],
    ['two different Authorizations', [good, `Authorization: Bearer ${cookie.slice('svc-auth='.length)}`]],
    ['Authorization in two cases', [good, good.replace('Authorization', 'authorization')]],
    ['a good and a wrong Authorization', [good, 'Authorization: Bearer x']],
    ['a good and an empty Authorization', [good, 'Authorization:']],
    ['an empty and a good Authorization', ['Authorization:', good]],
    ['an empty and a good X-API-KEY', ['X-API-KEY:', key]],
    ['the same X-API-KEY twice', [key, key]],
    ['two different X-API-KEYs', [key, 'X-API-KEY: wrong']],
    ['the cookie twice in a line', [`Cookie: ${cookie}; ${cookie}`]],
    ['the cookie in two lines', [`Cookie: ${cookie}`, 'Cookie: svc-auth=wrong']],
  ])('%s', async (_, lines) => {
    const reply = await askRaw(server.port, `GET ${path} HTTP/1.1`, lines)

    expect([reply.status, JSON.parse(reply.body).msg]).toEqual([400, 'credentials must be given once'])
  })

  test('two apiKey parameters', async () => {
    const reply = await askRaw(server.port, `GET ${path}?apiKey=${testApiKey}&apiKey=${testApiKey} HTTP/1.1`)

    expect(reply.status).toBe(400)
  })

  test('but not a cookie in one line and other cookies in another', async () => {
    const reply = await askRaw(server.port, `GET ${path} HTTP/1.1`, [`Cookie: ${cookie}`, 'Cookie: theme=dark'])

    expect(reply.status).toBe(200)
  })
})

const unsafe = [
  ['POST', `${api}/enable`],
  ['POST', '/v2/cookies/app/blobs/uploads/'],
  ['DELETE', '/v2/cookies/app/manifests/v1'],
  ['PUT', '/v2/cookies/app/manifests/v1'],
] as const
const own = new URL(server.url).origin

describe('a cookie with an unsafe method', () => {
  describe.each([
    ['a page of ours', { 'sec-fetch-site': 'same-origin' }],
    ['the address bar', { 'sec-fetch-site': 'none' }],
    ['our origin, of a browser without Sec-Fetch-Site', { origin: own }],
  ])('counts from %s', (_, headers) => {
    test.each(unsafe)('for %s %s', async (method, path) => {
      const reply = await server.ask(method, path, { key: 'none', headers: { cookie, ...headers } })

      expect([401, 403]).not.toContain(reply.status)
    })
  })

  describe.each([
    ['another site', { 'sec-fetch-site': 'cross-site' }],
    ['another site that names our origin', { 'sec-fetch-site': 'cross-site', origin: own }],
    ['another host of our site', { 'sec-fetch-site': 'same-site' }],
    ['a site that no browser names so', { 'sec-fetch-site': 'Same-Origin, none' }],
    ['another origin', { origin: 'https://evil.example' }],
    ['our host under another scheme', { origin: own.replace('http:', 'https:') }],
    ['our host at another port', { origin: `${own}0` }],
    ['an opaque origin', { origin: 'null' }],
    ['nowhere', {}],
  ])('is 403 from %s', (_, headers) => {
    test.each(unsafe)('for %s %s', async (method, path) => {
      const reply = await server.ask(method, path, { key: 'none', headers: { cookie, ...headers } })

      expect(reply.status).toBe(403)
      expect(reply.json()).toMatchObject({ msg: 'a cookie does not authorise requests that come from another site' })
    })
  })

  test('counts from the public address, where one is configured', async () => {
    const headers = { cookie: publishedCookie, origin: publicUrl }
    const reply = await published.ask('POST', `${api}/enable`, { key: 'none', headers })

    expect(reply.status).toBe(200)
  })

  test("does not count from the request's own address, where another is configured", async () => {
    const headers = { cookie: publishedCookie, origin: new URL(published.url).origin }
    const reply = await published.ask('POST', `${api}/enable`, { key: 'none', headers })

    expect(reply.status).toBe(403)
  })
})

test.each(['GET', 'HEAD'])('a cookie counts for %s from anywhere', async (method) => {
  const headers = { cookie, 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }

  expect((await server.ask(method, '/v2/', { key: 'none', headers })).status).toBe(200)
})

test('a wrong cookie from another site is 401, not 403', async () => {
  const headers = { cookie: 'svc-auth=wrong', 'sec-fetch-site': 'cross-site' }

  expect((await server.ask('POST', `${api}/enable`, { key: 'none', headers })).status).toBe(401)
})

test('another carrier counts for unsafe methods from anywhere', async () => {
  const headers = { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }

  expect((await server.ask('POST', `${api}/enable`, { key: testApiKey, headers })).status).toBe(200)
})
