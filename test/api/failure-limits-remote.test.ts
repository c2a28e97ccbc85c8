// Failure limits in front of another identity service: each guess costs it a question, and some answers decide nothing.
import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { Guesser, newGuess } from '../support/api/guesser.ts'
import { IdentityStub } from '../support/identity/identity-stub.ts'
import { startMoved } from '../support/server/moved-server.ts'

const stub = await IdentityStub.start()
const server = await startMoved({
  settings: {
    BERTH_AUTH__URL: stub.url,
    BERTH_SERVER__TRUSTED_PROXIES: '127.0.0.1',
    BERTH_AUTH__CALLS: '1000',
    BERTH_AUTH__QUEUE: '1000',
  },
})
afterAll(async () => {
  await server.stop()
  await stub.stop()
})

const burst = 20
let people = 0

beforeEach(async () => {
  server.move(120_000)
  await stub.set('good')
  stub.hold = undefined
  stub.calls.length = 0
})

function newPerson(): string {
  const secret = `key-of-person-${++people}`
  stub.people.set(secret, { roles: ['reader'], user: `person-${people}`, account: 'acme' })
  return secret
}

/** All at once, answered after all of them that come through have arrived. */
async function together(secrets: readonly string[], guesser = new Guesser(server)): Promise<number[]> {
  const { promise, resolve } = Promise.withResolvers<void>()
  stub.hold = promise
  const asked = Promise.all(secrets.map(async (secret) => (await guesser.bring(secret)).status))
  setTimeout(resolve, 300)
  return asked
}

describe('credentials that come together from one address', () => {
  test('are asked about no more often than may fail', async () => {
    const statuses = await together(Array.from({ length: 200 }, newGuess))
    console.log(`parallel guesses that were asked about: ${stub.calls.length} of 200, with a limit of ${burst}`)

    expect(stub.calls.length).toBe(burst)
    expect(statuses.filter((status) => status === 401).length).toBe(burst)
    expect(statuses.filter((status) => status === 429).length).toBe(200 - burst)
  })

  test('are all let in when they are good, however many they are', async () => {
    const statuses = await together(Array.from({ length: 100 }, newPerson))

    expect(statuses).toEqual(statuses.map(() => 200))
  })

  test('are one question when they are one credential', async () => {
    const person = newPerson()
    const statuses = await together(Array.from({ length: 100 }, () => person))

    expect([new Set(statuses), stub.calls.length]).toEqual([new Set([200]), 1])
  })
})

describe('answers that decide nothing', () => {
  test('are asked for by one address no more often than its limit, and are never 401', async () => {
    await stub.set('500')
    const guesser = new Guesser(server)
    expect(await guesser.guess(400)).toEqual([503])

    expect(stub.calls.length).toBe(burst)
  })

  test('which one address provokes, do not affect other addresses', async () => {
    const guesser = new Guesser(server)
    for (let tries = 0; tries < burst; tries += 1) {
      const odd = newGuess()
      stub.turnedAway.set(odd, 500)
      expect((await guesser.bring(odd)).status).toBe(503)
      expect((await new Guesser(server).bring(newPerson())).status).toBe(200)
    }
    for (let tries = 0; tries < burst; tries += 1) {
      const odd = newGuess()
      stub.turnedAway.set(odd, 500)
      await new Guesser(server, guesser.forwardedFor).bring(odd)
    }

    expect((await new Guesser(server).bring(newPerson())).status).toBe(200)
  })

  test('which many addresses get, leave the service alone for a moment', async () => {
    await stub.set('500')
    for (let tries = 0; tries < 10; tries += 1) await new Guesser(server).bring(newGuess())

    expect(stub.calls.length).toBe(5)
    await stub.set('good')
    expect((await new Guesser(server).bring(newPerson())).status).toBe(503)
    server.move(2_000)
    expect((await new Guesser(server).bring(newPerson())).status).toBe(200)
  })
})
