// A second Berth, in a process of its own, is the identity service of the first.
import { describe, expect, test } from 'bun:test'
import { indexOf } from '../support/api/api-images.ts'
import { api, identity } from '../support/api/api-server.ts'
import { json, password, usersPath } from '../support/api/managed-users.ts'
import { useRunning } from '../support/basics/running.ts'
import { testApiKey } from '../support/basics/test-project.ts'
import { ask, jsonOf, type Target } from '../support/clients/registry-client.ts'
import { until } from '../support/clocks/until.ts'
import { type BerthProcess, startBerth } from '../support/server/berth-process.ts'
import { basic, startTestServer } from '../support/server/test-server.ts'

const anyTag = '/manifests/latest'
/** The tests are a proxy of the first, and the first is one of the second. */
const behindProxy = { BERTH_SERVER__TRUSTED_PROXIES: '127.0.0.1' }
const burst = 4

const second = useRunning(() => startBerth({ settings: { ...behindProxy, BERTH_AUTH__FAILURE_BURST: String(burst) } }))
const first = useRunning(() =>
  startTestServer({
    ...behindProxy,
    BERTH_AUTH__URL: second.url,
    BERTH_AUTH__CACHE: '200ms',
    BERTH_AUTH__CACHE_REFUSED: '0s',
    BERTH_MANIFESTS__MISSING_CONTENT: 'allow',
  }),
)
let usersMade = 0

/** Asks the second as its administrator. */
async function manage(method: string, path: string, body: unknown): Promise<Record<string, string>> {
  const reply = await ask(second, method, usersPath + path, json(body))
  if (!reply.ok) throw new Error(`${method} ${path}: ${reply.status} ${await reply.text()}`)
  return (await reply.json()) as Record<string, string>
}

async function addUser(...roles: string[]): Promise<string> {
  usersMade += 1
  const name = `user-${usersMade}`
  await manage('POST', '', { name, roles, password })
  return name
}

async function addKey(user: string, limits: Readonly<Record<string, unknown>> = {}): Promise<string> {
  return (await manage('POST', `/${user}/keys`, { name: 'laptop', ...limits }))['key'] ?? ''
}

function tokenOf(berth: BerthProcess): Promise<string> {
  return fetchToken('admin', berth.adminPassword, berth)
}

async function fetchToken(username: string, itsPassword = password, target: Target = second): Promise<string> {
  const login = json({ username, password: itsPassword })
  return (await jsonOf<{ access_token: string }>(ask(target, 'POST', `${identity}/token/auth`, login))).access_token
}

async function statusOf(authorization: string, method: string, path: string, init: RequestInit = {}): Promise<number> {
  const headers = { ...init.headers, authorization }
  return (await first.fetchWithoutKey(path, { ...init, method, headers })).status
}

function push(authorization: string, repository: string): Promise<number> {
  const { bytes, mediaType } = indexOf([])
  const init = { body: bytes, headers: { 'content-type': mediaType } }
  return statusOf(authorization, 'PUT', `/v2/${repository}${anyTag}`, init)
}

function pull(authorization: string, repository: string): Promise<number> {
  return statusOf(authorization, 'GET', `/v2/${repository}${anyTag}`)
}

describe('a second Berth as the identity service', () => {
  test('lets its administrator in by API key, by token, and in every form of both; refuses other credentials', async () => {
    const token = await tokenOf(second)
    for (const authorization of [basic('apikey', testApiKey), basic('bearer', token), `Bearer ${token}`]) {
      expect(await push(authorization, 'admins/app')).toBe(201)
      expect(await pull(authorization, 'admins/app')).toBe(200)
    }
    for (const authorization of [
      basic('apikey', 'berth_nobody'),
      `Bearer ${token.slice(0, -8)}`,
      'Bearer opaque',
      basic('admin', 'x'),
    ]) {
      expect(await pull(authorization, 'admins/app')).toBe(401)
    }
    expect(await statusOf(`Bearer ${token}`, 'GET', `${api}/stats`)).toBe(200)
  })

  test('keeps its accounts: what one of its users pushes, another one of the account sees', async () => {
    const [writer, reader] = [await addKey(await addUser('writer')), await addKey(await addUser('reader'))]

    expect(await push(basic('apikey', writer), 'shared/app')).toBe(201)
    expect(await pull(basic('apikey', reader), 'shared/app')).toBe(200)
    expect(await push(basic('apikey', reader), 'shared/app')).toBe(403)
    expect(await statusOf(basic('apikey', writer), 'POST', `${api}/disable`)).toBe(403)
  })

  test.each([
    ['the key of a disabled user', 'key', { disabled: true }, 401],
    ['the token of a disabled user', 'token', { disabled: true }, 401],
    ['a role', 'key', { roles: ['reader'] }, 403],
  ] as const)('takes %s away here as soon as this server no longer remembers it', async (_, kind, change, status) => {
    const user = await addUser('writer')
    const authorization = kind === 'key' ? basic('apikey', await addKey(user)) : `Bearer ${await fetchToken(user)}`
    expect(await push(authorization, `ending/${user}`)).toBe(201)

    await manage('PATCH', `/${user}`, change)

    await until('a push is refused here', async () => (await push(authorization, `ending/${user}`)) === status)
    expect(await pull(authorization, `ending/${user}`)).toBe(status === 401 ? 401 : 200)
  })

  test('limits its keys here as there: to repositories, with or without a limit to rights', async () => {
    const [writer, all] = [await addUser('writer'), basic('apikey', testApiKey)]
    for (const repository of ['team/app', 'team/deep/app', 'teams', 'other']) await push(all, repository)
    const limited = basic('apikey', await addKey(writer, { rights: ['pull'], repositories: ['team/*'] }))

    expect(await pull(limited, 'team/app')).toBe(200)
    expect(await pull(limited, 'team/deep/app')).toBe(200)
    expect(await push(limited, 'team/app')).toBe(403)
    for (const repository of ['teams', 'other', 'nothing']) expect(await pull(limited, repository)).toBe(403)
    const catalog = await first.fetchWithoutKey('/v2/_catalog', { headers: { authorization: limited } })
    expect(await catalog.json()).toEqual({ repositories: ['team/app', 'team/deep/app'] })

    const allRights = basic('apikey', await addKey(await addUser('admin'), { repositories: ['own/*'] }))
    expect(await push(allRights, 'own/app')).toBe(201)
    expect(await push(allRights, 'others/app')).toBe(403)
    expect(await statusOf(allRights, 'POST', `${api}/disable`)).toBe(403)
  })

  test('counts failures per client of the first server: bad guesses do not limit the keys and passwords of other clients', async () => {
    const bring = async (authorization: string, address: string) =>
      (await first.fetchWithoutKey('/v2/', { headers: { authorization, 'x-forwarded-for': address } })).status
    const fresh: string[] = []
    for (let number = 0; number < 4; number += 1) {
      const user = await addUser('reader')
      fresh.push(basic('apikey', await addKey(user)), basic(user, password))
    }
    const told = new Set<number>()
    // More than ten clients may fail, which is the share of a trusted proxy that names no client.
    for (let guess = 0; guess < 16 * burst; guess += 1) {
      const shape = guess % 2 === 0 ? 'apikey' : `nobody-${guess}`
      told.add(await bring(basic(shape, `guess-${guess}`), `203.0.113.${guess % 16}`))
    }

    expect(told.has(200)).toBe(false)
    const statuses: number[] = []
    for (const [index, authorization] of fresh.entries()) {
      statuses.push(await bring(authorization, `198.51.100.${index}`))
    }
    expect(statuses).toEqual(fresh.map(() => 200))
    expect(await bring(basic('apikey', 'another-guess'), '203.0.113.1')).not.toBe(200)
  })

  test('may have its tokens checked here: they are good while it is gone, but those for one repository never', async () => {
    const third = await startBerth({ settings: { BERTH_AUTH__CHALLENGE: 'bearer' } })
    const here = await startTestServer({
      BERTH_AUTH__URL: third.url,
      BERTH_AUTH__CACHE: '0s',
      BERTH_AUTH__OUTAGE: '0s',
      BERTH_AUTH__JWKS_URL: `${third.url}${identity}/jwks.json`,
      BERTH_AUTH__ISSUER: 'berth',
      BERTH_AUTH__AUDIENCE: 'berth',
    })
    const statusHere = async (headers: Record<string, string>) =>
      (await here.fetchWithoutKey('/v2/_catalog', { headers })).status
    const [token, other] = [await tokenOf(third), await tokenOf(third)]
    const scope = `${third.url}/v2/_token?service=berth&scope=registry:catalog:*`
    const scoped = await fetch(scope, { headers: { authorization: basic('apikey', testApiKey) } })
    const { access_token: scopedToken } = (await scoped.json()) as { access_token: string }
    expect(await statusHere({ authorization: `Bearer ${token}` })).toBe(200)
    expect(await statusHere({ authorization: `Bearer ${scopedToken}` })).toBe(401)
    await third.kill()

    expect(await statusHere({ authorization: `Bearer ${other}` })).toBe(200)
    expect(await statusHere({ authorization: `Bearer ${scopedToken}` })).toBe(401)
    expect(await statusHere({ 'x-api-key': testApiKey })).toBe(503)
    await here.stop()
    await third.stop()
  }, 30_000)
})
