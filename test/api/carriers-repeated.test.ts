// decisions.md 5: malformed and repeated credentials are 401 with the challenge.
import { afterAll, describe, expect, test } from 'bun:test'
import { api, identity, startApi } from '../support/api/api-server.ts'
import { testAdminPassword, testApiKey } from '../support/basics/test-project.ts'
import { askRaw, type RawAnswer } from '../support/clients/raw-socket.ts'
import { basic } from '../support/server/test-server.ts'

const server = await startApi()
afterAll(() => server.stop())

async function cookieOf(one: typeof server): Promise<string> {
  const reply = await one.ask('POST', `${identity}/token/auth`, {
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ username: 'admin', password: testAdminPassword }),
  })
  return `svc-auth=${reply.json<{ access_token: string }>().access_token}`
}
const cookie = await cookieOf(server)

const good = `Authorization: ${basic('apikey', testApiKey)}`
const key = `X-API-KEY: ${testApiKey}`

function expectChallenge({ status, lines, body }: RawAnswer): void {
  const challenges = lines.filter(([name]) => name === 'www-authenticate').map(([, value]) => value)
  expect([status, challenges]).toEqual([401, ['Basic realm="Berth", charset="UTF-8"']])
  expect(JSON.parse(body).msg).toBe('the credentials are wrong, malformed, repeated or no longer valid')
}

describe.each(['/v2/', `${api}/stats`])(
  'credentials at %s are 401 with the challenge when they are repeated or malformed:',
  (path) => {
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
      ['an unknown scheme with a comma', ['Authorization: Digest username="x", realm="y"']],
      ['a Bearer token with a comma', ['Authorization: Bearer a,b']],
      ['a good X-API-KEY and a comma', [`X-API-KEY: ${testApiKey},`]],
      ['the cookie twice in a line', [`Cookie: ${cookie}; ${cookie}`]],
      ['the cookie in two lines', [`Cookie: ${cookie}`, 'Cookie: svc-auth=wrong']],
    ])('%s', async (_, lines) => {
      const reply = await askRaw(server.port, `GET ${path} HTTP/1.1`, lines)

      expectChallenge(reply)
    })

    test('two apiKey parameters', async () => {
      const reply = await askRaw(server.port, `GET ${path}?apiKey=${testApiKey}&apiKey=${testApiKey} HTTP/1.1`)

      expectChallenge(reply)
    })

    test('but not a cookie in one line and other cookies in another', async () => {
      const reply = await askRaw(server.port, `GET ${path} HTTP/1.1`, [`Cookie: ${cookie}`, 'Cookie: theme=dark'])

      expect(reply.status).toBe(200)
    })
  },
)
