// decisions.md 5: the cookie on an unsafe method needs Sec-Fetch-Site same-origin or none, or a matching Origin, or neither; else 403.
import { afterAll, describe, expect, test } from 'bun:test'
import { api } from '../support/api/api-server.ts'
import { logIn } from '../support/api/carriers.ts'
import { testApiKey } from '../support/basics/test-project.ts'
import { startFront } from '../support/server/front.ts'
import { startMoved } from '../support/server/moved-server.ts'
import { answerTo, type Facts, publicUrl, rows, titleOf, wantedAnswer } from './cookie-table.ts'

const settings = { BERTH_AUTH__FAILURE_BURST: '1000000' }
const plain = await startMoved({ settings })
const published = await startMoved({ settings: { ...settings, BERTH_SERVER__PUBLIC_URL: publicUrl } })
afterAll(() => Promise.all([plain.stop(), published.stop()]))

const facts: Readonly<Record<string, Facts>> = {
  'without a public address': { url: plain.url, cookie: await logIn(plain), key: testApiKey, ours: 'own' },
  'with a public address': { url: published.url, cookie: await logIn(published), key: testApiKey, ours: 'public' },
}

test('the table is whole', () => {
  expect(rows.length).toBe(7 * 3 * 5 * 7)
  console.log(`cookie table: ${rows.length} rows on each of ${Object.keys(facts).length} servers`)
})

describe.each(Object.entries(facts))('%s', (_, its) => {
  test.each(rows.map((row) => [titleOf(row), row] as const))('%s', async (_title, row) => {
    expect(await answerTo(row, its)).toBe(wantedAnswer(row, its))
  })
})

describe('the table finds out', () => {
  const its = facts['without a public address'] as Facts

  async function wrongRows(rewrite: (headers: Headers) => void): Promise<string[]> {
    const front = startFront(plain.url, (request, status) => {
      if (status !== 0) return undefined
      const next = new Request(request)
      rewrite(next.headers)
      return next
    })
    const wrong: string[] = []
    for (const row of rows) {
      const behindFront = { ...its, url: front.url }
      if ((await answerTo(row, behindFront)) !== wantedAnswer(row, behindFront)) wrong.push(titleOf(row))
    }
    front.stop()
    return wrong
  }

  const refused = rows.filter((row) => wantedAnswer(row, its) === 403)

  test('a server that takes every request for one of its own pages', async () => {
    expect(await wrongRows((headers) => headers.set('sec-fetch-site', 'same-origin'))).toEqual(refused.map(titleOf))
  })

  test('a server that checks only the origin', async () => {
    const wrong = await wrongRows((headers) => headers.delete('sec-fetch-site'))

    expect(wrong).toContain('POST with cookie, Sec-Fetch-Site cross-site, Origin own')
  })

  test('a server that never takes a cookie for an act', async () => {
    const wrong = await wrongRows((headers) => headers.set('sec-fetch-site', 'cross-site'))

    expect(wrong).toContain('DELETE with cookie, Sec-Fetch-Site same-origin, Origin absent')
  })
})

describe('beside the table', () => {
  const cookie = `svc-auth=${(facts['without a public address'] as Facts).cookie}`
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
