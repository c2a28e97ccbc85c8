// safety.md 5.5 over the wire: 20 failures at once, then 429 for 30 seconds, by address and by credential.
import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { api, identity, mounts } from '../support/api/api-server.ts'
import { addUser, carriers, logIn, makeKey } from '../support/api/carriers.ts'
import { Guesser, newGuess } from '../support/api/guesser.ts'
import { testAdminPassword, testApiKey } from '../support/basics/test-project.ts'
import { startMoved } from '../support/server/moved-server.ts'

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

// What one test has used up of what all addresses share is there again for the next.
beforeEach(() => server.move(60_000))

const unnamed = carriers.filter(({ isNamed }) => isNamed === undefined)
const places = [...mounts.map((mount) => `${mount}/`), `${api}/stats`, `${identity}/me`]
// Each guess with the name of a user costs a comparison of passwords, so these carriers are tried in one place.
const carrierPlaces = carriers.flatMap((carrier) =>
  (carrier.isNamed === undefined ? places : places.slice(0, 1)).map((path) => [carrier.name, path, carrier] as const),
)

describe('a client that has tried too many credentials', () => {
  test.each(carrierPlaces)('with %s is refused at %s', async (_, path, carrier) => {
    const guesser = new Guesser(server)
    expect(await guesser.guess(burst, path, 'GET', carrier)).toEqual([401])
    const refused = await guesser.bring(newGuess(), path, 'GET', carrier)

    expect([refused.status, refused.retryAfter, refused.challenge]).toEqual([429, '30', null])
    const body = JSON.parse(refused.text)
    if (path.endsWith('/v2/')) {
      const entry = { code: 'TOOMANYREQUESTS', message: words, detail: { retryAfterSeconds: 30 } }
      expect(body).toEqual({ errors: [entry], msg: words })
    } else expect(body).toEqual({ msg: words })
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
    expect(await guesser.guess(1)).toEqual([401])

    expect(await guesser.guess(1)).toEqual([429])
  })

  test('all at once waits for longer', async () => {
    const guesser = new Guesser(server)
    const all = await Promise.all(Array.from({ length: 100 }, () => guesser.bring(newGuess())))
    const next = await guesser.bring(newGuess())

    expect(all.every(({ status }) => status === 401 || status === 429)).toBe(true)
    expect(next.status).toBe(429)
    expect(Number(next.retryAfter)).toBeWithin(30, 127)
    server.move(Number(next.retryAfter) * 1000)
    expect(await guesser.guess(1)).toEqual([401])
  })
})

describe('good credentials at an address that is refused', () => {
  test('go on as long as they are remembered', async () => {
    const [guesser, known] = [new Guesser(server), await makeKey(server, 'known')]
    const token = await logIn(server)
    expect((await guesser.bring(known)).status).toBe(200)
    expect((await guesser.ask('GET', '/v2/', { headers: { authorization: `Bearer ${token}` } })).status).toBe(200)
    expect(await guesser.guess(burst)).toEqual([401])
    expect(await guesser.guess(1)).toEqual([429])

    expect((await guesser.bring(known)).status).toBe(200)
    expect((await guesser.ask('GET', '/v2/', { headers: { authorization: `Bearer ${token}` } })).status).toBe(200)
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

describe('one bad credential', () => {
  test('again and again is refused itself, and costs its address nothing', async () => {
    const robot = new Guesser(server)
    const old = newGuess()
    for (let tries = 0; tries < burst; tries += 1) expect((await robot.bring(old)).status).toBe(401)

    expect((await robot.bring(old)).status).toBe(429)
    expect((await new Guesser(server).bring(old)).status).toBe(429)
    expect(await robot.guess(burst - 1)).toEqual([401])
    expect(await robot.guess(1)).toEqual([429])
  })

  test('is the same by every carrier of its kind', async () => {
    const robot = new Guesser(server)
    const old = newGuess()
    const statuses: number[] = []
    for (let tries = 0; tries <= burst; tries += 1) {
      const carrier = unnamed[tries % unnamed.length]
      statuses.push((await robot.bring(old, '/v2/', 'GET', carrier)).status)
    }

    expect(statuses).toEqual([...Array.from({ length: burst }, () => 401), 429])
  })
})

describe('nothing is counted of', () => {
  test.each([
    ['requests without credentials', {}],
    ['carriers that hold nothing that could be one', { authorization: 'Basic !!!' }],
  ])('%s', async (_, headers) => {
    const guesser = new Guesser(server)
    for (let tries = 0; tries < 2 * burst; tries += 1) {
      expect((await guesser.ask('GET', '/v2/', { headers })).status).toBe(401)
    }

    expect(await guesser.guess(1)).toEqual([401])
  })

  test('tokens that have just expired', async () => {
    const fleet = new Guesser(server)
    const tokens: string[] = []
    for (let number = 0; number < burst + 5; number += 1) tokens.push(await logIn(server))
    server.move(24 * 3_600_000 + 1_000)
    for (const token of tokens) {
      expect((await fleet.ask('GET', '/v2/', { headers: { authorization: `Bearer ${token}` } })).status).toBe(401)
    }

    expect(await fleet.guess(1)).toEqual([401])
  })
})

describe('at the login', () => {
  const right = 'the right password of a user'

  test('passwords of one user are refused after too many from one address, which does not affect other addresses', async () => {
    await addUser(server, 'ann', right)
    const guesser = new Guesser(server)
    for (let tries = 0; tries < burst; tries += 1) {
      expect((await guesser.logIn('ann', newGuess())).status).toBe(401)
    }
    const refused = await guesser.logIn('ann', right)

    expect([refused.status, refused.retryAfter, refused.challenge]).toEqual([429, '30', null])
    expect(JSON.parse(refused.text)).toEqual({ msg: words })
    expect((await new Guesser(server).logIn('ann', right)).status).toBe(200)
    server.move(pauseMs)
    expect((await guesser.logIn('ann', right)).status).toBe(200)
  })

  test.each(['no such user', 'ann'])(
    'passwords of one user (%p) are refused after ten times as many from everywhere; others log in',
    async (user) => {
      const size = 3
      const own = await startMoved({
        settings: { BERTH_SERVER__TRUSTED_PROXIES: '127.0.0.1', BERTH_AUTH__FAILURE_BURST: String(size) },
      })
      try {
        await addUser(own, 'ann', right)
        for (let tries = 0; tries < 10 * size; tries += 1) {
          expect((await new Guesser(own).logIn(user, newGuess())).status).toBe(401)
          own.move(1)
        }
        expect((await new Guesser(own).logIn(user, newGuess())).status).toBe(429)
        expect((await new Guesser(own).logIn('admin', testAdminPassword)).status).toBe(200)
      } finally {
        await own.stop()
      }
    },
  )

  test('an address is refused after too many, also if the users differ', async () => {
    const guesser = new Guesser(server)
    for (let tries = 0; tries < burst; tries += 1) {
      // Two users in turn: each further password is a guess of its own.
      expect((await guesser.logIn(`nobody ${tries % 2}`, newGuess())).status).toBe(401)
    }

    expect((await guesser.logIn('admin', newGuess())).status).toBe(429)
    expect(await guesser.guess(1)).toEqual([429])
    expect((await new Guesser(server).logIn('admin', testAdminPassword)).status).toBe(200)
  })

  test('one wrong password again and again costs its address nothing', async () => {
    const robot = new Guesser(server)
    for (let tries = 0; tries < burst; tries += 1) await robot.logIn('robot', 'the old password')

    expect((await robot.logIn('robot', 'the old password')).status).toBe(429)
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
    for (let tries = 0; tries < burst; tries += 1) expect((await fetchToken(guesser, newGuess())).status).toBe(401)
    const refused = await fetchToken(guesser, newGuess())

    expect([refused.status, refused.retryAfter, refused.challenge]).toEqual([429, '30', null])
    expect(JSON.parse(refused.text)).toMatchObject({
      errors: [{ code: 'TOOMANYREQUESTS', message: words }],
      msg: words,
    })
    server.move(pauseMs)
    expect((await fetchToken(guesser, testApiKey)).status).toBe(200)
  })
})

test('the settings are obeyed', async () => {
  const strict = await startMoved({
    settings: {
      BERTH_SERVER__TRUSTED_PROXIES: '127.0.0.1',
      BERTH_AUTH__FAILURE_BURST: '3',
      BERTH_AUTH__FAILURES_PER_MINUTE: '60',
      BERTH_AUTH__FAILURE_PAUSE: '5s',
    },
  })
  const guesser = new Guesser(strict)

  expect(await guesser.guess(3)).toEqual([401])
  expect((await guesser.bring(newGuess())).retryAfter).toBe('5')
  await strict.stop()
})

test('a server without limits would be noticed', async () => {
  const free = await startMoved({
    settings: { BERTH_SERVER__TRUSTED_PROXIES: '127.0.0.1', BERTH_AUTH__FAILURE_BURST: '1000000' },
  })

  expect(await new Guesser(free).guess(burst + 1)).toEqual([401])
  await free.stop()
})
