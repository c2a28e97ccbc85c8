// decisions.md 5: Basic with a user's own name and password or API key, as `docker login -u alice` sends them.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type ApiServer, identity, type Reply, startApi } from '../support/api/api-server.ts'
import { Guesser, newGuess } from '../support/api/guesser.ts'
import { json, makeKey, makeUser, password, usersPath } from '../support/api/managed-users.ts'
import { testAdminPassword } from '../support/basics/test-project.ts'
import { IdentityStub } from '../support/identity/identity-stub.ts'
import { type MovedServer, startMoved } from '../support/server/moved-server.ts'
import { basic } from '../support/server/test-server.ts'

const scope = 'scope=repository:team/app:pull'

interface Login {
  readonly ask: (user: string, secret: string, path?: string) => Promise<Reply>
  readonly whoIs: (user: string, secret: string) => Promise<string>
}

function logins(server: ApiServer): Login {
  const ask = (user: string, secret: string, path = `${identity}/me`) =>
    server.ask('GET', path, { key: 'none', headers: { authorization: basic(user, secret) } })
  return {
    ask,
    async whoIs(user, secret) {
      const reply = await ask(user, secret)
      return reply.status === 200 ? reply.json<{ user: string }>().user : String(reply.status)
    },
  }
}

describe.each(['basic', 'bearer'] as const)('with the embedded identity service and the %s challenge', (challenge) => {
  let server: ApiServer
  let login: Login

  beforeAll(async () => {
    server = await startApi({
      BERTH_AUTH__CHALLENGE: challenge,
      BERTH_IDENTITY__CACHE: '60s',
      BERTH_AUTH__FAILURE_BURST: '1000',
    })
    login = logins(server)
    for (const name of ['alice', 'bob']) await makeUser(server, name, { roles: ['writer'], password })
  })
  afterAll(() => server.stop())

  test('a user signs in with the password and with the own keys, and with nothing else', async () => {
    const [own, other] = [await makeKey(server, 'alice'), await makeKey(server, 'bob')]

    expect(await login.whoIs('alice', password)).toBe('alice')
    expect(await login.whoIs('alice', own)).toBe('alice')
    expect(await login.whoIs('alice', other)).toBe('401')
    expect(await login.whoIs('Alice', password)).toBe('401')
    expect(await login.whoIs('alice', 'a wrong password')).toBe('401')
    expect(await login.whoIs('nobody', password)).toBe('401')
    expect((await login.ask('alice', password, '/v2/')).status).toBe(200)
    const limited = await makeKey(server, 'bob', { name: 'pulls', rights: ['pull'] })
    expect((await login.ask('bob', limited)).json<{ rights: string[] }>().rights).toEqual(['pull'])
  })

  test('the token endpoint, where there is one, takes it in a header and in a form', async () => {
    if (challenge === 'basic') return
    const body = new URLSearchParams({ grant_type: 'password', username: 'alice', password, scope: scope.slice(6) })
    const form = await server.ask('POST', '/v2/_token', {
      key: 'none',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: body.toString(),
    })
    for (const reply of [await login.ask('alice', password, `/v2/_token?${scope}`), form]) {
      expect(reply.json<{ scope: string }>().scope).toBe('repository:team/app:pull')
    }
  })

  test('a new password, or a user who is disabled, ends it at once', async () => {
    await makeUser(server, 'carol', { roles: ['writer'], password })
    const key = await makeKey(server, 'carol')
    const both = async (secret: string) => [await login.whoIs('carol', secret), await login.whoIs('carol', key)]
    expect(await both(password)).toEqual(['carol', 'carol'])
    await server.ask('PATCH', `${usersPath}/carol`, json({ password: 'another password of carol' }))
    expect(await both(password)).toEqual(['401', 'carol'])
    expect(await both('another password of carol')).toEqual(['carol', 'carol'])
    await server.ask('PATCH', `${usersPath}/carol`, json({ disabled: true }))

    expect(await both('another password of carol')).toEqual(['401', '401'])
  })
})

describe('what a login costs', () => {
  const verify = Bun.password.verify
  let comparisons = 0
  let server: MovedServer

  beforeAll(async () => {
    server = await startMoved({ settings: { BERTH_SERVER__TRUSTED_PROXIES: '127.0.0.1' } })
    Bun.password.verify = (...given) => {
      comparisons += 1
      return verify.apply(Bun.password, given)
    }
  })
  afterAll(async () => {
    Bun.password.verify = verify
    await server.stop()
  })

  const statusOf = async (guesser: Guesser, user: string, secret: string) =>
    (await guesser.ask('GET', '/v2/', { headers: { authorization: basic(user, secret) } })).status

  test('one comparison for many requests, together and later, and none for what can only be a key', async () => {
    const guesser = new Guesser(server)
    comparisons = 0
    const together = Array.from({ length: 50 }, () => statusOf(guesser, 'admin', testAdminPassword))
    expect(new Set(await Promise.all(together))).toEqual(new Set([200]))
    server.move(60_000)
    expect(await statusOf(guesser, 'admin', testAdminPassword)).toBe(200)
    expect(comparisons).toBe(1)
    expect(await statusOf(guesser, 'admin', `berth_${'x'.repeat(43)}`)).toBe(401)

    expect(comparisons).toBe(1)
  })

  test('wrong passwords are limited by address and by user, as at the login for a token', async () => {
    const guesser = new Guesser(server)
    for (let tries = 0; tries < 10; tries += 1) {
      expect(await statusOf(guesser, 'admin', newGuess())).toBe(401)
      expect((await guesser.logIn('admin', newGuess())).status).toBe(401)
    }

    expect(await statusOf(guesser, 'admin', newGuess())).toBe(429)
    expect(await statusOf(new Guesser(server), 'admin', testAdminPassword)).toBe(200)
  })
})

describe.each(['basic', 'bearer'] as const)('with a remote identity service and the %s challenge', (challenge) => {
  let stub: IdentityStub
  let server: ApiServer
  let login: Login

  beforeAll(async () => {
    stub = await IdentityStub.start()
    server = await startApi({
      BERTH_AUTH__URL: stub.url,
      BERTH_AUTH__CHALLENGE: challenge,
      BERTH_AUTH__CACHE: '0s',
      BERTH_AUTH__CACHE_REFUSED: '0s',
      BERTH_AUTH__OUTAGE: '0s',
    })
    login = logins(server)
    stub.logins.set('alice:her password', 'token-of-alice')
    stub.people.set('token-of-alice', { roles: ['writer'], user: 'alice', account: 'acme' })
    stub.people.set('key-of-alice', { roles: ['writer'], sub: '017f', username: 'alice', account: 'acme' })
    stub.people.set('key-of-bob', { roles: ['writer'], user: 'bob', account: 'acme' })
    stub.people.set('key-without-a-name', { roles: ['writer'], account: 'acme' })
  })
  afterAll(async () => {
    await server.stop()
    await stub.stop()
  })

  test('a password gets a token there once, and again when the token is refused', async () => {
    for (let time = 0; time < 3; time += 1) expect(await login.whoIs('alice', 'her password')).toBe('alice')
    expect(stub.triedLogins).toEqual(['alice:her password'])
    stub.people.delete('token-of-alice')
    stub.logins.set('alice:her password', 'next-token-of-alice')
    stub.people.set('next-token-of-alice', { roles: ['writer'], user: 'alice', account: 'acme' })

    expect(await login.whoIs('alice', 'her password')).toBe('alice')
    expect(await login.whoIs('alice', 'a wrong password')).toBe('401')
    if (challenge === 'bearer') {
      expect((await login.ask('alice', 'her password', `/v2/_token?${scope}`)).status).toBe(200)
    }
  })

  test('a key is good with the name of its user, if the service names one, and is tried as a password once', async () => {
    stub.triedLogins.length = 0
    for (let time = 0; time < 3; time += 1) expect(await login.whoIs('alice', 'key-of-alice')).toBe('017f')
    expect(stub.triedLogins).toEqual(['alice:key-of-alice'])
    expect(await login.whoIs('alice', 'key-of-bob')).toBe('401')
    expect((await login.ask('alice', 'key-without-a-name')).status).toBe(200)
    await login.ask('alice', `berth_${'x'.repeat(43)}`)

    expect(stub.triedLogins.some((tried) => tried.includes('berth_'))).toBe(false)
  })

  test('a service that cannot tell is 503, and never 401', async () => {
    for (const state of ['500', '429'] as const) {
      await stub.set(state)
      expect(await login.whoIs('alice', `password beside ${state}`)).toBe('503')
    }
    await stub.set('good')
  })
})
