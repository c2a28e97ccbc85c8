// The identity service works and rejects some credentials. Requests with those must not block other callers.
import { beforeEach, describe, expect, test } from 'bun:test'
import { useRunning } from '../support/basics/running.ts'
import { OutageWorld, type Person } from './outage-world.ts'

const world = useRunning(() => OutageWorld.open({ settings: { BERTH_SERVER__TRUSTED_PROXIES: '127.0.0.1' } }))

// What one test has used up of what an address may ask is there again for the next.
beforeEach(() => {
  world.clock.now += 60_000
})

/** More than a circuit breaker bears, with a few credentials in turn. */
const rounds = 10
const rejectedMax = 5

function makeRejectedCallers(status: number): readonly Person[] {
  const rejectedCallers = Array.from({ length: rejectedMax }, () => world.makeUpSecret())
  for (const { secret } of rejectedCallers) world.stub.turnedAway.set(secret, status)
  return rejectedCallers
}

const list = (person: Person, headers: Record<string, string> = {}) =>
  world.ask(person, 'GET', '/v2/_catalog', { headers })

describe.each([400, 404, 408, 429, 451])('credentials that the identity service rejects with %i', (status) => {
  test('are answered with 503 and Retry-After, and callers that are not remembered are served meanwhile', async () => {
    const rejectedCallers = makeRejectedCallers(status)
    for (let round = 0; round < rounds; round += 1) {
      const [served, ...rejected] = await Promise.all([
        list(world.addPerson()),
        ...rejectedCallers.map((one) => list(one)),
      ])
      expect(served.status).toBe(200)
      expect(rejected.map((reply) => [reply.status, reply.headers.get('retry-after')])).toEqual(
        rejectedCallers.map(() => [503, '5']),
      )
    }
  })

  test('do not prolong a real outage: the first answer of the service ends it', async () => {
    const [rejected] = makeRejectedCallers(status)
    await breakDown(500)
    world.clock.now += 3_000

    expect((await list(rejected ?? world.makeUpSecret())).status).toBe(503)
    expect((await list(world.addPerson())).status).toBe(200)
  })
})

/** So many failures, at several addresses, that the service is left alone for a moment, as it is well again. */
async function breakDown(status: number): Promise<void> {
  const rejectedCallers = makeRejectedCallers(status)
  for (let round = 0; round * rejectedCallers.length < rounds; round += 1) {
    for (const [number, rejected] of rejectedCallers.entries()) {
      expect((await list(rejected, { 'x-forwarded-for': `198.51.100.${number}` })).status).toBe(503)
    }
  }
}

describe('control', () => {
  test.each([500, 502, 503])(
    'answers of %i at five addresses shut all callers out for a moment, and the service is not asked',
    async (status) => {
      await breakDown(status)
      world.stub.calls.length = 0
      const person = world.addPerson()

      expect((await list(person)).status).toBe(503)
      expect(world.stub.calls).toEqual([])
      world.clock.now += 3_000
      expect((await list(person)).status).toBe(200)
    },
  )

  test('no credential stands in the log', () => {
    expect(world.findLeaks()).toEqual([])
    expect(world.logged.filter((line) => line.includes('request failed')).length).toBeGreaterThan(50)
  })
})
