// Authentication at either of two replicas: keys that are created and revoked, tokens, and the keys that sign them.
import { describe, expect } from 'bun:test'
import { testNeeding } from '../support/basics/needs.ts'
import { useRunning } from '../support/basics/running.ts'
import { testAdminPassword } from '../support/basics/test-project.ts'
import { ask, authorization, expectStatus, jsonOf, pushBlob, type Target } from '../support/clients/registry-client.ts'
import { until } from '../support/clocks/until.ts'
import { startReplicas } from '../support/replicas/replicas.ts'
import { sharedStoresNeed } from '../support/replicas/shared-stores.ts'
import { runBerth } from '../support/server/berth-command.ts'
import { bearing, identity, json, login, makeKey, me, scopedToken, statusWith } from './identity-requests.ts'

const keys = 50
/** How long a replica may remember a caller. A revoked key may work for this long, and no longer. */
const cacheMs = 2_000
const replicas = useRunning(
  () =>
    startReplicas({
      settings: {
        BERTH_AUTH__CHALLENGE: 'bearer',
        BERTH_IDENTITY__CACHE: `${cacheMs}ms`,
        BERTH_AUTH__FAILURE_BURST: '100000',
      },
    }),
  sharedStoresNeed,
)

const prove = (name: string, body: () => Promise<void>) => testNeeding(sharedStoresNeed, name, body)

async function kidsAt(target: Target): Promise<string[]> {
  const set = await jsonOf<{ keys: { kid: string }[] }>(ask(target, 'GET', `${identity}/jwks.json`))
  return set.keys.map(({ kid }) => kid)
}

const kidOf = (token: string): string => JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString()).kid

describe('a login', () => {
  prove('with a NUL in the name is refused like any other', async () => {
    for (const username of ['admin\0', '\0']) {
      const asked = fetch(`${replicas.a.url}${identity}/token/auth`, {
        method: 'POST',
        ...json({ username, password: testAdminPassword }),
      })
      expect((await asked).status).toBe(401)
    }
  })
})

describe('an API key', () => {
  prove(`that is made at one replica is good at the other at once, ${keys} times`, async () => {
    const { a, b } = replicas
    for (let round = 0; round < keys; round += 1) {
      const [maker, user] = round % 2 ? [a, b] : [b, a]
      const key = await makeKey(maker, `key-${round}`)
      expect(await me(user, key)).toBe(200)
      await expectStatus(204, ask(user, 'DELETE', `${identity}/users/admin/keys/key-${round}`))
      // The replica that revokes the key forgets all remembered callers.
      expect(await me(user, key)).toBe(401)
    }
  })

  prove(
    'that is revoked at one replica is good at the other for as long as identity.cache says, and no longer',
    async () => {
      const { a, b } = replicas
      const made: string[] = []
      for (let at = 0; at < 10; at += 1) made.push(await makeKey(a, `revoked-${at}`))
      expect(await Promise.all(made.map((key) => me(b, key)))).toEqual(made.map(() => 200))
      for (let at = 0; at < 10; at += 1) {
        await expectStatus(204, ask(a, 'DELETE', `${identity}/users/admin/keys/revoked-${at}`))
      }

      expect(await Promise.all(made.map((key) => me(a, key)))).toEqual(made.map(() => 401))
      await Bun.sleep(cacheMs)
      expect(await Promise.all(made.map((key) => me(b, key)))).toEqual(made.map(() => 401))
    },
  )
})

describe('a token', () => {
  prove('of either replica, for a login or for some repositories, is good at both', async () => {
    const { a, b } = replicas
    await pushBlob(a, 'identity/app', new TextEncoder().encode('for the token'))
    for (const issuer of [a, b]) {
      const scoped = await scopedToken(issuer, 'identity/app')
      const access = await login(issuer)
      for (const target of [a, b]) {
        const look = (path: string, token: string) => statusWith(target, path, bearing(token))
        expect(await look('/v2/identity/app/tags/list', scoped)).toBe(200)
        expect(await look('/v2/identity/other/tags/list', scoped)).toBe(401)
        expect(await look(`${identity}/me`, access)).toBe(200)
      }
    }
  })

  prove('is signed by a key that both replicas publish, though both began at once with none', async () => {
    const { a, b } = replicas
    const kids = await kidsAt(a)
    expect(await kidsAt(b)).toEqual(kids)
    for (const issuer of [a, b]) expect(kids).toContain(kidOf(await scopedToken(issuer, 'identity/app')))
  })
})

describe('the keys that sign tokens', () => {
  const signingKey = (...args: string[]) =>
    runBerth(['signing-key', ...args], { ...replicas.stores.settings, BERTH_DATA_DIR: '/nonexistent' })

  prove('change under both replicas: the new one is published by both, and tokens of before go on', async () => {
    const { a, b } = replicas
    const [before, token] = [await kidsAt(a), await scopedToken(b, 'identity/app')]
    const { exitCode, stderr } = await signingKey('rotate')
    expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 })

    for (const target of [a, b]) {
      const kids = await until('the new key is published', async () => {
        const now = await kidsAt(target)
        return now.length > before.length && now
      })
      expect(kids.slice(0, before.length)).toEqual(before)
      expect(await statusWith(target, '/v2/identity/app/tags/list', bearing(token))).toBe(200)
    }
  })

  prove(
    'are all replaced: both replicas come to refuse what the old ones signed, and take what the new one signs',
    async () => {
      const { a, b } = replicas
      const old = await login(a)
      expect(await statusWith(b, `${identity}/me`, bearing(old))).toBe(200)
      expect((await signingKey('rotate', '--now')).exitCode).toBe(0)

      const look = (target: Target, token: string) => statusWith(target, `${identity}/me`, bearing(token))
      for (const target of [a, b])
        await until('the old token is refused', async () => (await look(target, old)) === 401)
      for (const issuer of [a, b]) {
        const token = await login(issuer)
        expect([await look(a, token), await look(b, token)]).toEqual([200, 200])
      }
    },
  )

  prove('control: a token that none of them has signed is refused by both', async () => {
    const token = await scopedToken(replicas.a, 'identity/app')
    const [head = '', body = '', signature = ''] = token.split('.')
    const forged = `${head}.${body}.${signature.startsWith('A') ? 'B' : 'A'}${signature.slice(1)}`
    for (const target of replicas.all) {
      const look = (value: string) => statusWith(target, '/v2/identity/app/tags/list', { authorization: value })
      expect([await look(`Bearer ${forged}`), await look(`Bearer ${token}`), await look(authorization)]).toEqual([
        401, 200, 200,
      ])
    }
  })
})
