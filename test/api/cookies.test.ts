// Requests that a browser sends with its cookie. An unsafe method needs Sec-Fetch-Site `same-origin` or `none`. Without that
// header, Origin must be the origin of this server or absent, because every browser sends one of them. An explicit carrier
// counts from anywhere, also beside a cookie (decisions.md 5, safety.md 5.6).
import { afterAll, describe, expect, test } from 'bun:test'
import { api, identity } from '../support/api/api-server.ts'
import { logIn } from '../support/api/carriers.ts'
import { testApiKey } from '../support/basics/test-project.ts'
import { startMoved } from '../support/server/moved-server.ts'

const publicUrl = 'https://registry.example.com'
const settings = { BERTH_AUTH__FAILURE_BURST: '1000000' }
const plain = await startMoved({ settings })
const published = await startMoved({ settings: { ...settings, BERTH_SERVER__PUBLIC_URL: publicUrl } })
afterAll(() => Promise.all([plain.stop(), published.stop()]))
const cookies = { plain: await logIn(plain), published: await logIn(published) }

/** For each method, a request and its status for a caller with the right. */
const examples: readonly (readonly [method: string, path: string, status: number, body?: string])[] = [
  ['GET', '/v2/', 200],
  ['HEAD', '/v2/', 200],
  ['OPTIONS', '/v2/', 405],
  ['POST', `${api}/enable`, 200],
  ['PUT', '/v2/cookies/app/manifests/v1', 400, 'no manifest'],
  ['PATCH', `${identity}/users/admin`, 200, '{"roles":["admin"]}'],
  ['DELETE', '/v2/cookies/app/manifests/v1', 404],
]
const safeMethods = ['GET', 'HEAD', 'OPTIONS']

/** All pairs of Sec-Fetch-Site and Origin, and whether they show a page of the server at `url`. */
function pagesOf(url: string, own: string) {
  const sites = [undefined, 'same-origin', 'same-site', 'cross-site', 'none']
  const otherPort = `http://127.0.0.1:${(Number(new URL(url).port) % 60_000) + 1_024}`
  const origins = [undefined, url, otherPort, 'https://evil.example', 'null', publicUrl, `${url}, ${publicUrl}`]
  return sites.flatMap((site) =>
    origins.map((origin) => ({
      ...(site === undefined ? {} : { 'sec-fetch-site': site }),
      ...(origin === undefined ? {} : { origin }),
      isOwn: site === undefined ? origin === own || origin === undefined : site === 'same-origin' || site === 'none',
    })),
  )
}

describe.each([
  ['without a public address', plain, cookies.plain, plain.url],
  ['with a public address', published, cookies.published, publicUrl],
] as const)('%s', (_, server, token, own) => {
  test.each(examples)('%s counts with an explicit carrier, and with a cookie as its page says', async (...example) => {
    const [method, path, status, body] = example
    const key = { 'x-api-key': testApiKey }
    const cookie = { cookie: `svc-auth=${token}` }
    const pages = pagesOf(server.url, own)
    for (const [carriers, isExplicit] of [
      [cookie, false] as const,
      [key, true] as const,
      [{ ...key, ...cookie }, true] as const,
    ]) {
      for (const { isOwn, ...page } of pages) {
        const headers = { 'content-type': 'application/json', ...carriers, ...page }
        const answer = await server.ask(method, path, { headers, ...(body === undefined ? {} : { body }) })
        await answer.arrayBuffer()
        const isTaken = isOwn || isExplicit || safeMethods.includes(method)
        expect([page, answer.status]).toEqual([page, isTaken ? status : 403])
      }
    }
    expect(new Set(pages.map(({ isOwn }) => isOwn)).size).toBe(2)
  })
})

describe('beside the table', () => {
  const cookie = `svc-auth=${cookies.plain}`
  const enable = (headers: Readonly<Record<string, string>>) => plain.ask('POST', `${api}/enable`, { headers })

  test.each([
    ['in capitals', { 'sec-fetch-site': 'Same-Origin' }],
    ['twice', { 'sec-fetch-site': 'same-origin, none' }],
    ['empty', { 'sec-fetch-site': '', origin: plain.url }],
  ])('Sec-Fetch-Site %s is none of those that count', async (_, headers) => {
    expect((await enable({ cookie, ...headers })).status).toBe(403)
  })

  test.each([
    ['under another scheme', plain.url.replace('http:', 'https:')],
    ['with a slash at the end', `${plain.url}/`],
    ['with something behind it', `${plain.url}.evil.example`],
    ['with something before it', `http://evil.example@${new URL(plain.url).host}`],
    ['by another name of the same machine', plain.url.replace('127.0.0.1', 'localhost')],
  ])('our origin %s is not ours', async (_, origin) => {
    expect((await enable({ cookie, origin })).status).toBe(403)
  })

  test('the refusal says why, and nothing is done', async () => {
    const answer = await plain.ask('POST', `${api}/disable`, { headers: { cookie, 'sec-fetch-site': 'cross-site' } })

    expect(answer.status).toBe(403)
    expect(answer.headers.get('www-authenticate')).toBeNull()
    expect(await answer.json()).toEqual({ msg: 'a cookie does not authorise requests that come from another site' })
    expect((await plain.ask('GET', '/v2/_catalog', { headers: { cookie } })).status).toBe(200)
  })

  test('a wrong cookie from another site is 401, not 403: it authenticates no user', async () => {
    const answer = await enable({ cookie: 'svc-auth=wrong', 'sec-fetch-site': 'cross-site' })

    expect(answer.status).toBe(401)
  })

  test('no answer lets the pages of others read it', async () => {
    const headers = { cookie, origin: 'https://evil.example', 'access-control-request-method': 'POST' }
    for (const method of ['GET', 'OPTIONS']) {
      const answer = await plain.ask(method, '/v2/', { headers })

      expect([...answer.headers.keys()].filter((name) => name.startsWith('access-control-'))).toEqual([])
    }
  })
})
