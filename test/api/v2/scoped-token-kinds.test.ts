// Every kind of credential in the place of every other: none passes for what it is not.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { pushApiImage } from '../../support/api/api-images.ts'
import { api, identity } from '../../support/api/api-server.ts'
import { bearing, fetchToken, loginToken, startBearerApi } from '../../support/api/scoped-tokens.ts'
import { testApiKey } from '../../support/basics/test-project.ts'
import { forgedTokens } from '../../support/identity/forged-tokens.ts'
import { basic } from '../../support/server/test-server.ts'

const server = await startBearerApi({ BERTH_AUTH__ANONYMOUS_PULL: 'public/*' })
afterAll(() => server.stop())

beforeAll(async () => {
  await pushApiImage(server, 'public/app', 'v1')
})

const scope = 'repository:public/app:pull'
const everything = 'repository:public/app:* registry:catalog:*'
const login = await loginToken(server)
const kinds = {
  'API key': testApiKey,
  'login token': login,
  'scoped token': (await fetchToken(server, everything)).token,
  'anonymous token': (await fetchToken(server, everything, { key: 'none' })).token,
} as const
type Kind = keyof typeof kinds

/** The carriers of API keys, and those of tokens. */
const places = {
  'X-API-KEY': (secret: string) => ({ headers: { 'x-api-key': secret } }),
  'Basic apikey': (secret: string) => ({ headers: { authorization: basic('apikey', secret) } }),
  'the query': (secret: string) => ({ headers: {}, query: `apiKey=${secret}` }),
  Bearer: (secret: string) => ({ headers: { authorization: `Bearer ${secret}` } }),
  'Basic bearer': (secret: string) => ({ headers: { authorization: basic('bearer', secret) } }),
  'the cookie': (secret: string) => ({ headers: { cookie: `svc-auth=${secret}`, 'sec-fetch-site': 'same-origin' } }),
} as const
type Place = keyof typeof places
const forKeys: ReadonlySet<Place> = new Set<Place>(['X-API-KEY', 'Basic apikey', 'the query'])

const targets = [
  ['GET', '/v2/public/app/manifests/v1'],
  ['GET', '/v2/'],
  ['GET', '/v2/_catalog'],
  ['GET', `/v2/_token?scope=${scope}`],
  ['GET', `${identity}/me`],
  ['GET', `${identity}/users`],
  ['GET', `${api}/stats`],
  ['POST', `${api}/enable`],
  ['POST', `${api}/disable`],
] as const

/** The paths that each kind opens where it is carried rightly; nothing opens anything elsewhere. */
const opens: Readonly<Record<Kind, (path: string) => boolean>> = {
  'API key': () => true,
  'login token': () => true,
  'scoped token': (path) => path.startsWith('/v2/') && !path.startsWith('/v2/_token'),
  'anonymous token': (path) => path === '/v2/public/app/manifests/v1',
}

const table = (Object.keys(kinds) as Kind[]).flatMap((kind) =>
  (Object.keys(places) as Place[]).flatMap((place) =>
    targets.map(([method, path]) => {
      const isRightly = forKeys.has(place) === (kind === 'API key')
      return [kind, place, method, path, isRightly && opens[kind](path) ? 200 : 401] as const
    }),
  ),
)

test('the table has every kind in every place', () => {
  expect(table).toHaveLength(4 * 6 * targets.length)
  expect(table.filter(([, , , , status]) => status === 200)).toHaveLength(6 * targets.length + 3 * 3 + 3)
})

test.each(table)('a %s as %s at %s %s is %d', async (kind, place, method, path, status) => {
  const { query, headers } = { query: undefined, ...places[place](kinds[kind]) }
  const target = query === undefined ? path : `${path}${path.includes('?') ? '&' : '?'}${query}`
  const reply = await server.ask(method, target, { headers, key: 'none' })
  // Each row finds the registry switched on.
  if (path.endsWith('/disable')) await server.ask('POST', `${api}/enable`)

  expect(reply.status).toBe(status)
})

describe('a form takes no scoped token either', () => {
  test.each(['scoped token', 'anonymous token'] as const)('no %s', async (kind) => {
    for (const username of ['apikey', 'bearer']) {
      const body = new URLSearchParams({ grant_type: 'password', username, password: kinds[kind], scope }).toString()
      const headers = { 'content-type': 'application/x-www-form-urlencoded' }
      const reply = await server.ask('POST', '/v2/_token', { headers, body, key: 'none' })

      expect([username, reply.status]).toEqual([username, 401])
    }
  })
})

describe('a scoped token that was tampered with', () => {
  test('or was signed by another server, is refused', async () => {
    const other = await startBearerApi()
    const foreign = (await fetchToken(other, everything)).token
    await other.stop()
    const reply = await server.ask('GET', '/v2/public/app/manifests/v1', bearing(foreign))

    expect([reply.status, reply.headers.get('www-authenticate')]).toEqual([
      401,
      `Bearer realm="${server.url}/v2/_token",service="Berth",scope="${scope}",error="invalid_token"`,
    ])
  })

  test('is refused, however it was done', async () => {
    const { keys } = (await server.ask('GET', `${identity}/jwks.json`)).json<{ keys: Record<string, unknown>[] }>()
    const forged = await forgedTokens(kinds['scoped token'], keys[0] ?? {})
    const statuses = await Promise.all(
      Object.entries(forged).map(async ([what, token]) => {
        // No header can hold the one; no other would reach the check of tokens.
        if (token.length > 10_000) return [what, 401]
        return [what, (await server.ask('GET', '/v2/', bearing(token))).status]
      }),
    )

    expect(statuses.length).toBeGreaterThan(20)
    expect(statuses.filter(([, status]) => status !== 401)).toEqual([])
  })
})
