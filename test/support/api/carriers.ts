// The carriers of credentials, in the order in which they decide, and what each can bring: the six of spec.md, and a
// user's name with an API key or the password, as `docker login` sends them.

import { testAdminPassword, testApiKey } from '../basics/test-project.ts'
import { type MovedServer, startMoved } from '../server/moved-server.ts'
import { basic } from '../server/test-server.ts'
import { identity } from './api-server.ts'

/** What a carrier adds to a request. */
export interface Carried {
  readonly headers?: Readonly<Record<string, string>>
  readonly query?: string
}

/** What carriers take up in a request; two in one place are one too many. */
export type Place = 'authorization' | 'x-api-key' | 'query' | 'cookie'

/** decisions.md 5: Authorization, then X-API-KEY, then the query, then the cookie. */
export const placesInOrder: readonly Place[] = ['authorization', 'x-api-key', 'query', 'cookie']

export interface Carrier {
  readonly name: string
  readonly place: Place
  readonly kind: 'apiKey' | 'token' | 'password'
  /** Holds the name of the administrator too. */
  readonly isNamed?: true
  carry(secret: string): Carried
  /** Something that is none of the six, however much it looks like this one. */
  carryNearly(secret: string): Carried
}

const samePage = { 'sec-fetch-site': 'same-origin' }

export const carriers: readonly Carrier[] = [
  {
    name: 'Authorization: Bearer',
    place: 'authorization',
    kind: 'token',
    carry: (secret) => ({ headers: { authorization: `Bearer ${secret}` } }),
    carryNearly: (secret) => ({ headers: { 'proxy-authorization': `Bearer ${secret}` } }),
  },
  {
    name: 'Authorization: Basic apikey',
    place: 'authorization',
    kind: 'apiKey',
    carry: (secret) => ({ headers: { authorization: basic('apikey', secret) } }),
    carryNearly: () => ({ headers: { authorization: basic('', '') } }),
  },
  {
    name: 'Authorization: Basic bearer',
    place: 'authorization',
    kind: 'token',
    carry: (secret) => ({ headers: { authorization: basic('bearer', secret) } }),
    carryNearly: (secret) => ({ headers: { 'x-authorization': basic('bearer', secret) } }),
  },
  {
    name: 'X-API-KEY',
    place: 'x-api-key',
    kind: 'apiKey',
    carry: (secret) => ({ headers: { 'x-api-key': secret } }),
    carryNearly: (secret) => ({ headers: { 'api-key': secret, 'x-apikey': secret } }),
  },
  {
    name: 'query apiKey',
    place: 'query',
    kind: 'apiKey',
    carry: (secret) => ({ query: `apiKey=${encodeURIComponent(secret)}` }),
    carryNearly: (secret) => ({ query: `apikey=${encodeURIComponent(secret)}&api_key=${encodeURIComponent(secret)}` }),
  },
  {
    name: 'cookie svc-auth',
    place: 'cookie',
    kind: 'token',
    carry: (secret) => ({ headers: { ...samePage, cookie: `svc-auth=${secret}` } }),
    carryNearly: (secret) => ({ headers: { ...samePage, cookie: `SVC-AUTH=${secret}; svc-auth2=${secret}` } }),
  },
  {
    name: 'Authorization: Basic user with API key',
    place: 'authorization',
    kind: 'apiKey',
    isNamed: true,
    carry: (secret) => ({ headers: { authorization: basic('admin', secret) } }),
    carryNearly: (secret) => ({ headers: { 'proxy-authorization': basic('admin', secret) } }),
  },
  {
    name: 'Authorization: Basic user with password',
    place: 'authorization',
    kind: 'password',
    isNamed: true,
    carry: (secret) => ({ headers: { authorization: basic('admin', secret) } }),
    carryNearly: (secret) => ({ headers: { 'x-authorization': basic('admin', secret) } }),
  },
]

export const states = ['good', 'bad', 'expired', 'absent'] as const
export type State = (typeof states)[number]
export type Secrets = Readonly<Record<Carrier['kind'], Readonly<Record<Exclude<State, 'absent'>, string>>>>

export function carryIn(carrier: Carrier, state: State, secrets: Secrets): Carried {
  const own = secrets[carrier.kind]
  return state === 'absent' ? carrier.carryNearly(own.good) : carrier.carry(own[state])
}

/** A request with a JSON body that must have this status; gives the parsed answer. */
async function must<T>(server: MovedServer, status: number, method: string, path: string, body: unknown): Promise<T> {
  const headers = { 'content-type': 'application/json', 'x-api-key': testApiKey }
  const answer = await server.ask(method, identity + path, { headers, body: JSON.stringify(body) })
  if (answer.status !== status) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`)
  return (await answer.json()) as T
}

export async function logIn(server: MovedServer, username = 'admin', password = testAdminPassword): Promise<string> {
  const token = await must<{ access_token: string }>(server, 200, 'POST', '/token/auth', { username, password })
  return token.access_token
}

export async function addUser(server: MovedServer, name: string, password: string): Promise<void> {
  await must(server, 201, 'POST', '/users', { name, password, roles: ['reader'] })
}

/** A key of the user; with an end, one that ends after so long. */
export async function makeKey(
  server: MovedServer,
  name: string,
  user = 'admin',
  endsAfterMs?: number,
): Promise<string> {
  const expiresAt = endsAfterMs === undefined ? undefined : new Date(server.now() + endsAfterMs).toISOString()
  return (await must<{ key: string }>(server, 201, 'POST', `/users/${user}/keys`, { name, expiresAt })).key
}

const dayMs = 24 * 3_600_000

/**
 * One of each: the expired ones were good until the clock moved on; the bad ones are what another server would take.
 */
export async function makeSecrets(server: MovedServer): Promise<Secrets> {
  const earlier = 'an earlier password of the administrator'
  for (const password of [earlier, testAdminPassword]) {
    await must(server, 200, 'PATCH', '/users/admin', { password })
    await logIn(server, 'admin', password)
  }
  const expired = { apiKey: await makeKey(server, 'expired', 'admin', 3_600_000), token: await logIn(server) }
  for (const headers of [{ 'x-api-key': expired.apiKey }, { authorization: `Bearer ${expired.token}` }]) {
    const { status } = await server.ask('GET', '/v2/', { headers })
    if (status !== 200) throw new Error(`what is to expire was never good: ${status}`)
  }
  server.move(dayMs + 3_600_000)
  const other = await startMoved()
  other.move(server.now() - other.now())
  const bad = { apiKey: await makeKey(other, 'foreign'), token: await logIn(other) }
  await other.stop()
  const good = { apiKey: await makeKey(server, 'good'), token: await logIn(server) }
  return {
    apiKey: { good: good.apiKey, bad: bad.apiKey, expired: expired.apiKey },
    token: { good: good.token, bad: bad.token, expired: expired.token },
    password: { good: testAdminPassword, bad: 'a password of nobody', expired: earlier },
  }
}
