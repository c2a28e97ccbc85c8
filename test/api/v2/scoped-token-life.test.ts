// How long a scoped token is good, and what ends it.
import { afterAll, describe, expect, test } from 'bun:test'
import { pushApiImage, startUpload } from '../../support/api/api-images.ts'
import { type ApiServer, api, identity } from '../../support/api/api-server.ts'
import { addPerson } from '../../support/api/people.ts'
import {
  askForToken,
  bearing,
  claimsOf,
  fetchToken,
  forgeToken,
  type IssuedToken,
  loginToken,
  startBearerApi,
} from '../../support/api/scoped-tokens.ts'

const server = await startBearerApi()
afterAll(() => server.stop())
await pushApiImage(server, 'team/app', 'v1')

const scope = 'repository:team/app:pull'
const path = '/v2/team/app/manifests/v1'

function endOf({ token }: IssuedToken): number {
  return Number(claimsOf(token)['exp']) * 1000
}

const day = 24 * 3_600_000
const short = await startBearerApi({ BERTH_AUTH__TOKEN_LIFETIME: '1m' })
afterAll(() => short.stop())

test.each([
  ['15 minutes', server, undefined, 900, 900],
  ['15 minutes, also if it was issued for a token that lives for a day', server, 'login', 900, 900],
  ['as long as the setting says', short, undefined, 60, 60],
  ['no longer than the API key that it was issued for', server, 300_000, 300, 300],
  ['no longer than its API key, even if clients are always told at least a minute', server, 30_000, 30, 60],
])('a token lives for %s', async (_, at, issuedFor, seconds, told) => {
  const now = Date.now()
  const limits = { expiresAt: now + (typeof issuedFor === 'number' ? issuedFor : day) }
  const key = await addPerson(at, { name: `lives-${issuedFor}`, roles: ['reader'], limits })
  const issued = await fetchToken(at, scope, issuedFor === 'login' ? bearing(await loginToken(at)) : { key })

  expect(issued.expires_in).toBeWithin(Math.max(60, told - 60), told + 1)
  expect(endOf(issued)).toBeWithin(now + seconds * 1_000 - 2_000, Date.parse(issued.issued_at) + seconds * 1_000 + 1)
  if (at === server) expect((await at.ask('GET', path, bearing(issued.token))).status).toBe(200)
})

test('no token is issued for an API key that has expired', async () => {
  const key = await addPerson(server, { name: 'over', roles: ['reader'], limits: { expiresAt: Date.now() - 1_000 } })

  expect((await askForToken(server, [scope], { key })).status).toBe(401)
})

test.each([
  ['a moment ago', 1_000],
  ['half a minute ago', 30_000],
  ['an hour ago', 3_600_000],
])('a token that ended %s is told to be invalid, and which to fetch', async (_, agoMs) => {
  const { account } = (await server.ask('GET', `${identity}/me`)).json<{ account: string }>()
  const content = {
    principal: { account, subject: 'admin' },
    access: [{ repository: 'team/app', rights: ['pull'] }],
    catalog: undefined,
  } as const
  const good = await forgeToken(server, content, Date.now() + 60_000)
  const over = await forgeToken(server, content, Date.now() - agoMs)
  const reply = await server.ask('GET', path, bearing(over))

  expect((await server.ask('GET', path, bearing(good))).status).toBe(200)
  expect([reply.status, reply.headers.get('www-authenticate')]).toEqual([
    401,
    `Bearer realm="${server.url}/v2/_token",service="Berth",scope="${scope}",error="invalid_token"`,
  ])
})

test('a token that ends during an upload does not end the upload', async () => {
  const { account } = (await server.ask('GET', `${identity}/me`)).json<{ account: string }>()
  const content = {
    principal: { account, subject: 'admin' },
    access: [{ repository: 'team/app', rights: ['pull', 'push'] }],
    catalog: undefined,
  } as const
  const session = await startUpload(server, 'team/app')
  const token = await forgeToken(server, content, Date.now() + 2_000)
  const end = Number(claimsOf(token)['exp']) * 1000
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      controller.enqueue(new TextEncoder().encode('first '))
      while (Date.now() <= end) await Bun.sleep(50)
      controller.enqueue(new TextEncoder().encode('last'))
      controller.close()
    },
  })
  const patched = await server.ask('PATCH', session, { ...bearing(token), body })

  expect([patched.status, patched.headers.get('range')]).toEqual([202, '0-9'])
  // Only the next request needs the next token.
  expect((await server.ask('GET', session, bearing(token))).status).toBe(401)
  const { token: next } = await fetchToken(server, 'repository:team/app:pull,push')
  expect((await server.ask('GET', session, bearing(next))).status).toBe(204)
})

describe('a right that its owner loses meanwhile', () => {
  const change = (one: ApiServer, name: string, body: unknown) =>
    one.ask('PATCH', `${identity}/users/${name}`, {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })

  test('ends with the token, and the user gets no other token', async () => {
    const key = await addPerson(server, { name: 'dan', roles: ['reader'] })
    const { token } = await fetchToken(server, scope, { key })
    expect((await change(server, 'dan', { disabled: true })).status).toBe(200)

    expect((await server.ask('GET', path, bearing(token))).status).toBe(200)
    expect((await askForToken(server, [scope], { key })).status).toBe(401)
  })

  test('is gone from the next token', async () => {
    const key = await addPerson(server, { name: 'rod', roles: ['writer'] })
    const asked = 'repository:team/app:pull,push'
    expect((await fetchToken(server, asked, { key })).scope).toBe(asked)
    await change(server, 'rod', { roles: ['reader'] })

    expect((await fetchToken(server, asked, { key })).scope).toBe(scope)
  })
})

test('a disabled account gets tokens that open nothing before it is enabled', async () => {
  await server.ask('POST', `${api}/disable`)
  const { token } = await fetchToken(server, scope)
  const check = await server.ask('GET', '/v2/', bearing(token))
  const refused = await server.ask('GET', path, bearing(token))
  await server.ask('POST', `${api}/enable`)

  expect([check.status, refused.status]).toEqual([200, 403])
  expect((await server.ask('GET', path, bearing(token))).status).toBe(200)
})

test('an anonymous token cannot be exchanged for the next one after anonymous pull was switched off', async () => {
  const open = await startBearerApi({ BERTH_AUTH__ANONYMOUS_PULL: 'team/*' })
  try {
    const { token } = await fetchToken(open, scope, { key: 'none' })
    expect((await askForToken(open, [scope], { key: 'none' })).status).toBe(200)

    expect((await askForToken(open, [scope], bearing(token))).status).toBe(401)
  } finally {
    await open.stop()
  }
})
