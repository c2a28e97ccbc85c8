// Every way of bringing a secret to a server: well formed and broken, good and bad, where it belongs and where it does not.
import { api, identity } from '../../support/api/api-server.ts'
import type { CarrierWorld } from '../../support/api/carrier-world.ts'
import { type Carrier, carriers } from '../../support/api/carriers.ts'
import { operations } from '../../support/api/route-examples.ts'
import { sendRaw } from '../../support/clients/raw-socket.ts'
import { basic } from '../../support/server/test-server.ts'
import { type CanaryServer, newSecret } from './canary-server.ts'

const json = { 'content-type': 'application/json' }
const form = { 'content-type': 'application/x-www-form-urlencoded' }

/** Whether a cell of the matrix is tried: all are in CI (MATRIX=all), and otherwise each under one of the challenges. */
export type Choice = (cell: number) => boolean

/** Every operation by every carrier, with good credentials and with bad ones. Gives how many requests that were. */
export async function askEverything(server: CanaryServer, world: CarrierWorld, isChosen: Choice): Promise<number> {
  const good = await goodOf(server)
  let requests = 0
  for (const [row, operation] of operations.entries()) {
    for (const [column, carrier] of carriers.entries()) {
      for (const isGood of [true, false]) {
        if (!isChosen(row + column + Number(isGood))) continue
        const secret = isGood ? good[carrier.kind] : newSecret()
        if (!isGood) server.canaries.add({ name: `a bad credential in ${carrier.name}`, secret })
        const request = await world.prepare(operation)
        await server.askBy(carrier, secret, operation.method, request.path, request)
        if (operation.route.operationId === 'disableService') await world.must(200, 'POST', `${api}/enable`)
        requests += 1
      }
    }
  }
  return requests
}

async function goodOf(server: CanaryServer): Promise<Readonly<Record<Carrier['kind'], string>>> {
  const login = JSON.stringify({ username: 'admin', password: server.password })
  const answer = await server.ask('POST', `${identity}/token/auth`, { headers: json, body: login })
  const { access_token: token } = (await answer.json()) as { access_token: string }
  return { apiKey: server.apiKey, token, password: server.password }
}

/** Addresses at which something is wrong. */
const oddPaths = [
  '/nothing/here',
  '/v2/nothing',
  '/v2/NOT/valid/tags/list',
  '/v2/a%2fb/tags/list',
  '/v2/%ff/tags/list',
  '/v2//',
  '/v2/_catalog?n=many',
  '/v2/_catalog?n=1&last=x',
  `/v2/x/blobs/uploads/?mount=no-digest&from=x`,
  `/v2/_catalog?last=${'x'.repeat(9_000)}`,
  `${api}/enable`,
]

export async function askOddly(server: CanaryServer, isChosen: Choice): Promise<void> {
  const good = await goodOf(server)
  for (const [row, path] of oddPaths.entries()) {
    for (const [column, method] of ['GET', 'PUT', 'POST', 'OPTIONS'].entries()) {
      if (!isChosen(row + column)) continue
      for (const carrier of carriers) {
        const bad = newSecret(' ü"\\+%&')
        server.canaries.add({ name: `a bad credential at ${path.slice(0, 40)}`, secret: bad })
        await server.askBy(carrier, good[carrier.kind], method, path)
        if (carrier.place === 'query' || carrier.name.includes('Basic')) await server.askBy(carrier, bad, method, path)
      }
    }
  }
}

/** Bodies with passwords in them that are wrong in some way. */
export async function sendOddBodies(server: CanaryServer): Promise<void> {
  const asAdmin = { 'x-api-key': server.apiKey }
  const bodies = (secret: string): readonly string[] => [
    JSON.stringify({ username: 'admin', password: secret }),
    JSON.stringify({ username: 'nobody', password: secret }),
    JSON.stringify({ username: 'admin', password: [secret] }),
    JSON.stringify({ username: 'admin', password: { secret } }),
    JSON.stringify({ username: 'admin', password: secret }).slice(0, -1),
    `{"username":"admin","password":${secret}}`,
    `{"username":"admin","password":"${secret}}`,
    `{"username":"admin","password":"${secret}\\u"}`,
    JSON.stringify({ username: 'admin', password: secret.repeat(300) }),
    JSON.stringify([secret]),
    new URLSearchParams({ grant_type: 'password', username: 'apikey', password: secret }).toString(),
    new URLSearchParams({ grant_type: 'refresh_token', refresh_token: secret }).toString(),
    new URLSearchParams({ grant_type: 'password', username: 'someone', password: secret }).toString(),
    JSON.stringify({ name: 'canary', password: secret, roles: ['no role: /'] }),
    JSON.stringify({ name: 'not a name', password: secret }),
    JSON.stringify({ name: 'new', expiresAt: 'never', secret }),
  ]
  const targets = [
    ['POST', `${identity}/token/auth`, {}],
    ['POST', '/v2/_token', {}],
    ['POST', `${identity}/users`, asAdmin],
    ['PATCH', `${identity}/users/matrix`, asAdmin],
    ['POST', `${identity}/users/matrix/keys`, asAdmin],
    ['PUT', '/v2/some/app/manifests/v1', {}],
  ] as const
  for (const [method, path, headers] of targets) {
    for (const type of [json, form, { 'content-type': 'text/plain' }, { ...json, 'content-encoding': 'gzip' }]) {
      const secret = newSecret()
      server.canaries.add({ name: `a secret in a body for ${path}`, secret })
      for (const body of bodies(secret)) await server.ask(method, path, { headers: { ...type, ...headers }, body })
    }
  }
}

/** A user changes the password and logs in. API keys are used, limited and revoked. */
export async function manageUsers(server: CanaryServer): Promise<void> {
  const headers = { ...json, 'x-api-key': server.apiKey }
  const passwords = [newSecret(), newSecret(' ü"\\+%&')]
  for (const secret of passwords) server.canaries.add({ name: "a user's password", secret })
  const [first, second] = passwords
  const user = `${identity}/users/canary`
  await server.ask('POST', `${identity}/users`, { headers, body: JSON.stringify({ name: 'canary', password: first }) })
  for (const password of passwords) {
    const body = JSON.stringify({ username: 'canary', password })
    await server.ask('POST', `${identity}/token/auth`, { headers: json, body })
    await server.ask('PATCH', user, { headers, body: JSON.stringify({ password: second, roles: ['writer'] }) })
  }
  for (const name of ['one', 'one', 'two']) {
    const made = await server.ask('POST', `${user}/keys`, { headers, body: JSON.stringify({ name }) })
    const { key } = (await made.json()) as { key?: string }
    if (key === undefined) continue
    const own = { headers: { 'x-api-key': key } }
    await server.ask('GET', `${identity}/me`, own)
    await server.ask('DELETE', `${user}/keys/${name}`, { headers })
    await server.ask('GET', `${identity}/me`, own)
  }
}

/** Requests that no client would send. */
export async function sendRawOddities(server: CanaryServer): Promise<void> {
  const { apiKey, password } = server
  const key = `X-API-KEY: ${apiKey}`
  const authorization = `Authorization: ${basic('apikey', apiKey)}`
  const oddities: readonly (readonly string[])[] = [
    ['GET /v2/ HTTP/1.1', 'Host: a', key, key],
    ['GET /v2/ HTTP/1.1', 'Host: a', authorization, authorization],
    ['GET /v2/ HTTP/1.1', 'Host: a', 'Host: b', key],
    ['GET /v2/ HTTP/1.1', `Host: ${apiKey}@example.com`, key],
    [`GET /v2/?apiKey=${apiKey}&apiKey=${apiKey} HTTP/1.1`, 'Host: a'],
    [`GET /v2/?apiKey=${apiKey} HTTP/1.1`, 'Host: a', authorization],
    [`GET /v2//?apiKey=${apiKey} HTTP/1.1`, 'Host: a'],
    [`GET /v2/?apiKey=${apiKey}%zz HTTP/1.1`, 'Host: a'],
    [`GET http://a/v2/?apiKey=${apiKey} HTTP/1.1`, 'Host: a'],
    [`GET /v2/ HTTP/9.9`, 'Host: a', key],
    [`GET /v2/?apiKey=${apiKey}`, 'Host: a'],
    [`BREW /v2/?apiKey=${apiKey} HTTP/1.1`, 'Host: a', key],
    ['GET /v2/ HTTP/1.1', 'Host: a', `${authorization}${'A'.repeat(20_000)}`],
    ['GET /v2/ HTTP/1.1', 'Host: a', `X-API-KEY : ${apiKey}`],
    ['GET /v2/ HTTP/1.1', 'Host: a', `Authorization: Basic ${apiKey}`],
    ['GET /v2/ HTTP/1.1', 'Host: a', `Authorization: ${apiKey}`],
    ['GET /v2/ HTTP/1.1', 'Host: a', `Cookie: svc-auth=${apiKey}; svc-auth=${apiKey}`],
    ['GET /v2/ HTTP/1.1', 'Host: a', `Authorization: ${basic('admin', password)}`],
    ['GET /v2/ HTTP/1.1', 'Host: a', key, `Referer: http://a/v2/?apiKey=${apiKey}`, `X-Forwarded-For: ${apiKey}`],
    ['POST /v2/x/blobs/uploads/ HTTP/1.1', 'Host: a', key, 'Content-Length: many'],
    ['POST /v2/x/blobs/uploads/ HTTP/1.1', 'Host: a', key, 'Transfer-Encoding: gzip'],
  ]
  for (const [line = '', ...headers] of oddities) {
    const { text } = await sendRaw(server.port, [line, ...headers, 'Connection: close', '', ''].join('\r\n'))
    server.note({ name: `the answer to ${line.split('?')[0]}`, text })
  }
}
