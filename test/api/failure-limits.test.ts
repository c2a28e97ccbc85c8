// safety.md 5.5 over the wire: 20 failures at once, then 429 for 30 seconds, by address and by credential.
import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { api, identity, mounts } from '../support/api/api-server.ts'
import { addUser, carriers, logIn, makeKey } from '../support/api/carriers.ts'
import { Guesser, newGuess, type Told } from '../support/api/guesser.ts'
import { testAdminPassword, testApiKey } from '../support/basics/test-project.ts'
import { startMoved } from '../support/server/moved-server.ts'
import { basic } from '../support/server/test-server.ts'

let asked = 0
const server = await startMoved({
  settings: { BERTH_SERVER__TRUSTED_PROXIES: '127.0.0.1', BERTH_AUTH__CHALLENGE: 'bearer' },
  change: ({ identity: inner }) => ({
    identity: {
      findCached: (credential) => inner.findCached(credential),
      findByHeader: () => undefined,
      isUnguessable: (credential) => inner.isUnguessable(credential),
      clear: () => inner.clear(),
      authenticate(credential) {
        asked += 1
        return inner.authenticate(credential)
      },
    },
  }),
})
afterAll(() => server.stop())

const burst = 20
const pauseMs = 30_000
const words = 'too many bad credentials; try again later'

/** So many tries are answered 401. */
async function fail(times: number, ask: () => Promise<Told>): Promise<void> {
  for (let tries = 0; tries < times; tries += 1) expect((await ask()).status).toBe(401)
}

/** After so many tries, the next is refused, even with the right credentials. */
async function expectLimited(times: number, ask: () => Promise<Told>, last = ask): Promise<string> {
  await fail(times, ask)
  const { status, retryAfter, challenge, text } = await last()

  expect([status, retryAfter, challenge]).toEqual([429, '30', null])
  expect(JSON.parse(text)).toMatchObject({ msg: words })
  return text
}

const asBearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })

// What one test has used up of what all addresses share is there again for the next.
beforeEach(() => server.move(60_000))

const unnamed = carriers.filter(({ isNamed }) => isNamed === undefined)
const places = [...mounts.map((mount) => `${mount}/`), `${api}/stats`, `${identity}/me`]
const carrierPlaces = carriers.flatMap((carrier) => places.map((path) => [carrier.name, path, carrier] as const))

describe('a client that has tried too many credentials', () => {
  test.each(carrierPlaces)('with %s is refused at %s', async (_, path, carrier) => {
    const guesser = new Guesser(server)
    const text = await expectLimited(burst, () => guesser.bring(newGuess(), path, 'GET', carrier))
    const entry = { code: 'TOOMANYREQUESTS', message: words, detail: { retryAfterSeconds: 30 } }

    expect(JSON.parse(text)).toEqual(path.endsWith('/v2/') ? { errors: [entry], msg: words } : { msg: words })
  })

  test('is refused at each path and by each carrier, before the credential is checked', async () => {
    const guesser = new Guesser(server)
    await guesser.guess(burst)
    const before = asked
    for (const carrier of carriers) {
      for (const method of ['GET', 'HEAD', 'POST', 'DELETE']) {
        const told = await guesser.bring(newGuess(), '/v2/some/app/blobs/uploads/', method, carrier)
        expect([told.status, told.text === '']).toEqual([429, method === 'HEAD'])
      }
    }

    expect((await guesser.logIn('admin', testAdminPassword)).status).toBe(429)
    expect(asked).toBe(before)
  })

  test('may try again after the pause, for as many as the pause has given back', async () => {
    const guesser = new Guesser(server)
    await guesser.guess(burst)
    server.move(pauseMs - 1_000)
    const late = await guesser.bring(newGuess())
    expect([late.status, late.retryAfter]).toEqual([429, '1'])
    server.move(1_000)

    expect(await guesser.guess(5)).toEqual([401])
    expect(await guesser.guess(1)).toEqual([429])
  })

  test('stays limited even after a good one between them', async () => {
    const guesser = new Guesser(server)
    await guesser.guess(burst - 1)
    expect((await guesser.bring(await makeKey(server, 'between'))).status).toBe(200)

    expect([await guesser.guess(1), await guesser.guess(1)]).toEqual([[401], [429]])
  })

  test('all at once waits for longer', async () => {
    const guesser = new Guesser(server)
    const all = await Promise.all(Array.from({ length: 100 }, () => guesser.bring(newGuess())))
    const next = await guesser.bring(newGuess())

    expect(new Set(all.map(({ status }) => status))).toEqual(new Set([401, 429]))
    expect([next.status, Number(next.retryAfter) >= 30, Number(next.retryAfter) < 127]).toEqual([429, true, true])
    server.move(Number(next.retryAfter) * 1000)
    expect(await guesser.guess(1)).toEqual([401])
  })
})

describe('good credentials at an address that is refused', () => {
  test('go on as long as they are remembered', async () => {
    const [guesser, known] = [new Guesser(server), await makeKey(server, 'known')]
    const token = await logIn(server)
    const statuses = async () => [
      (await guesser.bring(known)).status,
      (await guesser.ask('GET', '/v2/', asBearer(token))).status,
    ]
    expect(await statuses()).toEqual([200, 200])
    await expectLimited(burst, () => guesser.bring(newGuess()))

    expect(await statuses()).toEqual([200, 200])
    const cookie = { cookie: `svc-auth=${token}`, 'sec-fetch-site': 'same-origin' }
    expect((await guesser.ask('POST', `${api}/enable`, { headers: cookie })).status).toBe(200)
  })

  test('that are passwords, and are not remembered, wait too and are good again after the pause', async () => {
    const [guesser, user, password] = [new Guesser(server), 'late', 'the password of a user']
    await addUser(server, user, password)
    await guesser.guess(burst)

    expect((await guesser.logIn(user, password)).status).toBe(429)
    expect((await new Guesser(server).logIn(user, password)).status).toBe(200)
    expect((await guesser.logIn(user, password)).status).toBe(200)
    server.move(pauseMs)
    expect((await guesser.logIn(user, password)).status).toBe(200)
  })
})

describe('keys and tokens of this registry, which cannot be guessed, at an address that is refused', () => {
  test('are good when they are new, and others of the same form get 429', async () => {
    const guesser = new Guesser(server)
    const key = await makeKey(server, 'beside-guesses')
    const issued = await server.ask('GET', '/v2/_token', { headers: { 'x-api-key': testApiKey } })
    const { token } = (await issued.json()) as { token: string }
    const login = await logIn(server)
    await expectLimited(burst, () => guesser.bring(newGuess()))

    const ways: readonly (readonly [string, (secret: string) => Promise<Told>])[] = [
      [key, (secret) => guesser.bring(secret)],
      [key, (secret) => guesser.ask('GET', '/v2/', { headers: { authorization: basic('admin', secret) } })],
      ...[token, login].map((one) => [one, (secret: string) => guesser.ask('GET', '/v2/', asBearer(secret))] as const),
    ]
    for (const [secret, bring] of ways) {
      expect([(await bring(secret)).status, (await bring(`${secret.slice(0, -4)}AAAA`)).status]).toEqual([200, 429])
    }
  })

  test('are good after bad ones from everywhere', async () => {
    const keys = await Promise.all(Array.from({ length: 18 }, (_, number) => makeKey(server, `fresh-${number}`)))
    for (let tries = 0; tries < 400; tries += 1) {
      await new Guesser(server, `2001:${tries.toString(16)}:1:1::1`).bring(newGuess())
    }
    const statuses = await Promise.all(keys.map(async (key) => (await new Guesser(server).bring(key)).status))

    expect(statuses).toEqual(statuses.map(() => 200))
  })
})

describe('one bad credential', () => {
  test('again and again is refused itself by every carrier of its kind, and costs its address nothing', async () => {
    const robot = new Guesser(server)
    const old = newGuess()
    let tries = 0
    const bring = () => robot.bring(old, '/v2/', 'GET', unnamed[tries++ % unnamed.length])
    await expectLimited(burst, bring)

    expect((await new Guesser(server).bring(old)).status).toBe(429)
    expect(await robot.guess(burst - 1)).toEqual([401])
    expect(await robot.guess(1)).toEqual([429])
  })
})

describe('nothing is counted of', () => {
  test.each([
    ['requests without credentials', {}],
    ['carriers that hold nothing that could be one', { authorization: 'Basic !!!' }],
  ])('%s', async (_, headers) => {
    const guesser = new Guesser(server)
    await fail(2 * burst, () => guesser.ask('GET', '/v2/', { headers }))

    expect(await guesser.guess(1)).toEqual([401])
  })

  test('tokens that have just expired', async () => {
    const fleet = new Guesser(server)
    const tokens = await Promise.all(Array.from({ length: burst + 5 }, () => logIn(server)))
    server.move(24 * 3_600_000 + 1_000)
    await fail(tokens.length, () => fleet.ask('GET', '/v2/', asBearer(tokens.pop() ?? '')))

    expect(await fleet.guess(1)).toEqual([401])
  })
})

describe('at the login', () => {
  const right = 'the right password of a user'

  test('passwords of one user are refused after too many from one address, which does not affect other addresses', async () => {
    await addUser(server, 'ann', right)
    const guesser = new Guesser(server)
    await expectLimited(
      burst,
      () => guesser.logIn('ann', newGuess()),
      () => guesser.logIn('ann', right),
    )

    expect((await new Guesser(server).logIn('ann', right)).status).toBe(200)
    server.move(pauseMs)
    expect((await guesser.logIn('ann', right)).status).toBe(200)
  })

  test.each(['no such user', 'ann'])(
    'passwords of one user (%p) are refused after ten times as many from everywhere; others log in',
    async (user) => {
      const size = 3
      const settings = { BERTH_SERVER__TRUSTED_PROXIES: '127.0.0.1', BERTH_AUTH__FAILURE_BURST: String(size) }
      const own = await startMoved({ settings })
      await addUser(own, 'ann', right)
      await fail(10 * size, () => {
        own.move(1)
        return new Guesser(own).logIn(user, newGuess())
      })
      expect((await new Guesser(own).logIn(user, newGuess())).status).toBe(429)
      expect((await new Guesser(own).logIn('admin', testAdminPassword)).status).toBe(200)
      await own.stop()
    },
  )

  test('an address is refused after too many, also if the users differ', async () => {
    const guesser = new Guesser(server)
    let tries = 0
    // Two users in turn: each further password is a guess of its own.
    const guess = () => guesser.logIn(`nobody ${tries++ % 2}`, newGuess())
    await expectLimited(burst, guess, () => guesser.logIn('admin', newGuess()))

    expect(await guesser.guess(1)).toEqual([429])
    expect((await new Guesser(server).logIn('admin', testAdminPassword)).status).toBe(200)
  })

  test('one wrong password again and again costs its address nothing', async () => {
    const robot = new Guesser(server)
    await expectLimited(burst, () => robot.logIn('robot', 'the old password'))

    expect((await robot.logIn('admin', testAdminPassword)).status).toBe(200)
  })
})

describe.each(mounts)('where tokens are issued, at %s/_token', (mount) => {
  const form = { 'content-type': 'application/x-www-form-urlencoded' }
  const formOf = (password: string) =>
    new URLSearchParams({ grant_type: 'password', username: 'apikey', password }).toString()
  const ways = [
    ['GET', (guesser: Guesser, key: string) => guesser.bring(key, `${mount}/_token`)],
    [
      'POST',
      (guesser: Guesser, key: string) => guesser.ask('POST', `${mount}/_token`, { headers: form, body: formOf(key) }),
    ],
  ] as const

  test.each(ways)('by %s too', async (_, fetchToken) => {
    const guesser = new Guesser(server)
    await expectLimited(burst, () => fetchToken(guesser, newGuess()))
    server.move(pauseMs)

    expect((await fetchToken(guesser, testApiKey)).status).toBe(200)
  })
})

test.each([
  [
    'the settings are obeyed',
    { BERTH_AUTH__FAILURE_BURST: '3', BERTH_AUTH__FAILURES_PER_MINUTE: '60', BERTH_AUTH__FAILURE_PAUSE: '5s' },
    3,
    429,
    '5',
  ],
  ['a server without limits would be noticed', { BERTH_AUTH__FAILURE_BURST: '1000000' }, burst, 401, null],
] as const)('%s', async (_, settings, tries, status, retryAfter) => {
  const own = await startMoved({ settings: { BERTH_SERVER__TRUSTED_PROXIES: '127.0.0.1', ...settings } })
  const guesser = new Guesser(own)

  expect(await guesser.guess(tries)).toEqual([401])
  expect(await guesser.bring(newGuess())).toMatchObject({ status, retryAfter })
  await own.stop()
})
