// Where a challenge sends its client for a token: the address must be right behind proxies, and in the client's own mount.
import { expect, test } from 'bun:test'
import { type ApiServer, api, mounts, startApi } from '../../support/api/api-server.ts'
import { startBearerApi } from '../../support/api/scoped-tokens.ts'
import { testApiKey } from '../../support/basics/test-project.ts'

const prefixed = `${api}/v2`
const host = 'registry.example.com'

async function challengeAt(server: ApiServer, path: string, headers: Readonly<Record<string, string>> = {}) {
  return (await server.ask('GET', path, { headers, key: 'none' })).headers.get('www-authenticate') ?? ''
}

async function realmOf(server: ApiServer, mount: string, headers: Readonly<Record<string, string>> = {}) {
  const challenge = await challengeAt(server, `${mount}/team/app/tags/list`, headers)
  return /^Bearer realm="([^"]+)"/.exec(challenge)?.[1] ?? challenge
}

test('a challenge stays in its mount, which issues tokens, and is for credentials elsewhere', async () => {
  const server = await startBearerApi()
  for (const mount of mounts) {
    const realm = await realmOf(server, mount)

    expect(realm).toBe(`${server.url}${mount}/_token`)
    expect((await fetch(realm, { headers: { 'x-api-key': testApiKey } })).status).toBe(200)
  }
  const basic = 'Basic realm="Berth", charset="UTF-8"'
  expect(await challengeAt(server, '/v2/')).toBe(`Bearer realm="${server.url}/v2/_token",service="Berth"`)
  expect([await challengeAt(server, `${api}/stats`), await challengeAt(server, '/v2/_token')]).toEqual([basic, basic])
  await server.stop()
})

test('without a root mount, the prefix alone issues tokens', async () => {
  const server = await startBearerApi({ BERTH_REGISTRY__ROOT_MOUNT: 'false' })
  // The document no longer has this operation.
  const ask = async (method: string, mount: string) =>
    (await fetch(`${server.url}${mount}/_token`, { method, headers: { 'x-api-key': testApiKey } })).status

  expect(await realmOf(server, prefixed)).toBe(`${server.url}${prefixed}/_token`)
  expect([await ask('GET', prefixed), await ask('GET', '/v2'), await ask('POST', '/v2')]).toEqual([200, 404, 404])
  await server.stop()
})

const behindTls = { host, 'x-forwarded-proto': 'https' }
const evil = { ...behindTls, 'x-forwarded-host': 'evil.example', forwarded: 'proto=https;host=evil.example' }
const published = { BERTH_SERVER__PUBLIC_URL: 'https://images.example.com', BERTH_SERVER__TRUSTED_PROXIES: '127.0.0.1' }

test.each<readonly [string, Record<string, string>, Record<string, string>, string]>([
  ['the host that the client named', {}, { host: `${host}:8443` }, `http://${host}:8443`],
  [
    'https where a trusted proxy says so',
    { BERTH_SERVER__TRUSTED_PROXIES: '127.0.0.0/8,::1' },
    behindTls,
    `https://${host}`,
  ],
  [
    'http where a trusted proxy says nothing',
    { BERTH_SERVER__TRUSTED_PROXIES: '127.0.0.1' },
    { host },
    `http://${host}`,
  ],
  ['nothing that another peer says', { BERTH_SERVER__TRUSTED_PROXIES: '192.0.2.1' }, evil, `http://${host}`],
  [
    'the public address where one is set',
    published,
    { ...behindTls, 'x-forwarded-proto': 'http' },
    'https://images.example.com',
  ],
])('the address has %s', async (_, settings, headers, origin) => {
  const server = await startBearerApi(settings)
  const realms = [await realmOf(server, '/v2', headers), await realmOf(server, prefixed, headers)]
  await server.stop()

  expect(realms).toEqual([`${origin}/v2/_token`, `${origin}${prefixed}/_token`])
})

test('in basic mode no tokens are issued, so that clients that POST there use Basic', async () => {
  const server = await startApi()
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  const body = `grant_type=password&username=apikey&password=${testApiKey}`
  const statuses: number[] = []
  for (const path of mounts.map((mount) => `${mount}/_token`)) {
    for (const who of [{}, { key: 'none' }]) {
      statuses.push((await server.ask('GET', path, who)).status)
      statuses.push((await server.ask('POST', path, { headers, body, ...who })).status)
    }
  }
  await server.stop()

  expect(statuses).toEqual(Array.from({ length: 8 }, () => 404))
})
