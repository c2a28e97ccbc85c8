// Where a challenge sends its client for a token: the address must be right behind proxies, and in the client's own mount.
import { describe, expect, test } from 'bun:test'
import { type ApiServer, api, mounts, startApi } from '../../support/api/api-server.ts'
import { startBearerApi } from '../../support/api/scoped-tokens.ts'
import { testApiKey } from '../../support/basics/test-project.ts'

const prefixed = `${api}/v2`

async function realmOf(server: ApiServer, mount: string, headers: Readonly<Record<string, string>> = {}) {
  const reply = await server.ask('GET', `${mount}/team/app/tags/list`, { headers, key: 'none' })
  const challenge = reply.headers.get('www-authenticate') ?? ''
  return /^Bearer realm="([^"]+)"/.exec(challenge)?.[1] ?? `${reply.status} ${challenge}`
}

async function withServer(settings: Readonly<Record<string, string>>, body: (server: ApiServer) => Promise<void>) {
  const server = await startBearerApi(settings)
  try {
    await body(server)
  } finally {
    await server.stop()
  }
}

describe('the realm', () => {
  test.each([...mounts])('stays in the mount %s, and issues tokens there', async (mount) => {
    await withServer({}, async (server) => {
      const realm = await realmOf(server, mount)
      const answer = await fetch(realm, { headers: { 'x-api-key': testApiKey } })

      expect(realm).toBe(`${server.url}${mount}/_token`)
      expect(answer.status).toBe(200)
    })
  })

  test('under the prefix is the only one where there is no root mount', async () => {
    await withServer({ BERTH_REGISTRY__ROOT_MOUNT: 'false' }, async (server) => {
      expect(await realmOf(server, prefixed)).toBe(`${server.url}${prefixed}/_token`)
      expect((await server.ask('GET', `${prefixed}/_token`)).status).toBe(200)
      // No operation of the document any more, but an address like any other.
      for (const method of ['GET', 'POST']) {
        expect((await fetch(`${server.url}/v2/_token`, { method, headers: { 'x-api-key': testApiKey } })).status).toBe(
          404,
        )
      }
    })
  })

  test('names the host that the client named', async () => {
    await withServer({}, async (server) => {
      expect(await realmOf(server, '/v2', { host: 'registry.example.com:8443' })).toBe(
        'http://registry.example.com:8443/v2/_token',
      )
    })
  })

  test('is an https one where a trusted proxy says so', async () => {
    await withServer({ BERTH_SERVER__TRUSTED_PROXIES: '127.0.0.0/8,::1' }, async (server) => {
      const headers = { host: 'registry.example.com', 'x-forwarded-proto': 'https' }

      expect(await realmOf(server, '/v2', headers)).toBe('https://registry.example.com/v2/_token')
      expect(await realmOf(server, prefixed, headers)).toBe(`https://registry.example.com${prefixed}/_token`)
      expect(await realmOf(server, '/v2', { host: 'registry.example.com' })).toBe(
        'http://registry.example.com/v2/_token',
      )
    })
  })

  test('does not believe any other peer', async () => {
    await withServer({ BERTH_SERVER__TRUSTED_PROXIES: '192.0.2.1' }, async (server) => {
      const headers = {
        host: 'registry.example.com',
        'x-forwarded-proto': 'https',
        'x-forwarded-host': 'evil.example',
        forwarded: 'proto=https;host=evil.example',
      }

      expect(await realmOf(server, '/v2', headers)).toBe('http://registry.example.com/v2/_token')
    })
  })

  test('is the public address where one is set, whatever the request says', async () => {
    const settings = {
      BERTH_SERVER__PUBLIC_URL: 'https://images.example.com',
      BERTH_SERVER__TRUSTED_PROXIES: '127.0.0.1',
    }
    await withServer(settings, async (server) => {
      const headers = { host: 'other.example.com', 'x-forwarded-proto': 'http' }

      expect(await realmOf(server, '/v2', headers)).toBe('https://images.example.com/v2/_token')
      expect(await realmOf(server, prefixed)).toBe(`https://images.example.com${prefixed}/_token`)
    })
  })
})

describe('one challenge alone', () => {
  test('is for a token in the registry, and for credentials elsewhere', async () => {
    await withServer({}, async (server) => {
      const challengeAt = async (path: string) =>
        (await server.ask('GET', path, { key: 'none' })).headers.get('www-authenticate')

      expect(await challengeAt('/v2/')).toBe(`Bearer realm="${server.url}/v2/_token",service="Berth"`)
      expect(await challengeAt(`${api}/stats`)).toBe('Basic realm="Berth", charset="UTF-8"')
      expect(await challengeAt('/v2/_token')).toBe('Basic realm="Berth", charset="UTF-8"')
    })
  })
})

describe('in basic mode', () => {
  test.each([...mounts])('no tokens are issued under %s, so that clients that POST there use Basic', async (mount) => {
    const server = await startApi()
    const form = { 'content-type': 'application/x-www-form-urlencoded' }
    const body = `grant_type=password&username=apikey&password=${testApiKey}`
    const replies = [
      await server.ask('GET', `${mount}/_token`),
      await server.ask('GET', `${mount}/_token`, { key: 'none' }),
      await server.ask('POST', `${mount}/_token`, { headers: form, body }),
      await server.ask('POST', `${mount}/_token`, { headers: form, body, key: 'none' }),
    ]
    await server.stop()

    expect(replies.map((reply) => reply.status)).toEqual([404, 404, 404, 404])
  })
})
