// The identity service is well, and turns some credentials away: whoever brings those must not shut out the others.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { OutageWorld, type Person } from './outage-world.ts'

let world: OutageWorld
beforeAll(async () => {
  world = await OutageWorld.open({ settings: { BERTH_SERVER__TRUSTED_PROXIES: '127.0.0.1' } })
})
afterAll(() => world.close())

// What one test has used up of what an address may ask is there again for the next.
beforeEach(() => {
  world.now += 60_000
})

/** More than a circuit breaker bears, with a few credentials in turn. */
const rounds = 10
const strangersMax = 5

function strangersTurnedAway(status: number): readonly Person[] {
  const strangers = Array.from({ length: strangersMax }, () => world.makeUpSecret())
  for (const { secret } of strangers) world.stub.turnedAway.set(secret, status)
  return strangers
}

const list = (person: Person) => world.ask(person, 'X-API-KEY', 'GET', '/v2/_catalog')

describe.each([400, 404, 408, 429, 451])('credentials that the identity service rejects with %i', (status) => {
  test('are answered with 503 and Retry-After, and callers that are not remembered are served', async () => {
    const strangers = strangersTurnedAway(status)
    const seen: number[] = []
    for (let round = 0; round < rounds; round += 1) {
      for (const stranger of strangers) {
        const reply = await list(stranger)
        expect([reply.status, reply.headers.get('retry-after')]).toEqual([503, '5'])
      }
      seen.push((await list(world.addPerson())).status)
    }

    expect(seen).toEqual(Array.from({ length: rounds }, () => 200))
  })

  test('do not affect other callers at the same time', async () => {
    const strangers = strangersTurnedAway(status)
    const asked = Array.from({ length: rounds * strangers.length }, (_, at) => strangers[at % strangers.length])
    const [refused, served] = await Promise.all([
      Promise.all(asked.flatMap((stranger) => (stranger === undefined ? [] : [list(stranger)]))),
      Promise.all(Array.from({ length: rounds }, () => list(world.addPerson()))),
    ])

    expect(new Set(refused.map((reply) => reply.status))).toEqual(new Set([503]))
    expect(refused).toHaveLength(rounds * strangersMax)
    expect(new Set(served.map((reply) => reply.status))).toEqual(new Set([200]))
  })

  test('do not prolong a real outage: the first answer of the service ends it', async () => {
    const [stranger] = strangersTurnedAway(status)
    await breakDown(500)
    world.now += 3_000

    expect((await list(stranger ?? world.makeUpSecret())).status).toBe(503)
    expect((await list(world.addPerson())).status).toBe(200)
  })
})

/** So many failures, at several addresses, that the service is left alone for a moment, as it is well again. */
async function breakDown(status: number): Promise<void> {
  const strangers = strangersTurnedAway(status)
  for (let round = 0; round * strangers.length < rounds; round += 1) {
    for (const [number, stranger] of strangers.entries()) {
      expect((await list({ ...stranger, from: `198.51.100.${number}` })).status).toBe(503)
    }
  }
}

describe('control', () => {
  test.each([500, 502, 503])(
    'answers of %i at five addresses shut everybody out for a moment, and the service is not asked',
    async (status) => {
      await breakDown(status)
      world.stub.calls.length = 0
      const person = world.addPerson()

      expect((await list(person)).status).toBe(503)
      expect(world.stub.calls).toEqual([])
      world.now += 3_000
      expect((await list(person)).status).toBe(200)
    },
  )

  test('no credential stands in the log', () => {
    expect(world.findLeaks()).toEqual([])
    expect(world.logged.filter((line) => line.includes('request failed')).length).toBeGreaterThan(50)
  })
})
