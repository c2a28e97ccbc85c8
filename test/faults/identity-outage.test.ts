// The identity service is down, slow, or sends invalid answers. Each row of the matrix tests what is still allowed.
import { afterAll, describe, expect, test } from 'bun:test'
import { askRaw } from '../support/clients/raw-socket.ts'
import { until } from '../support/clocks/until.ts'
import { memories, operations, type Row, rows, states, tryRow } from './outage-matrix.ts'
import { OutageWorld, outageCarriers } from './outage-world.ts'

/** The smallest valid value. Only the tests of a slow service need a world with a short timeout. */
const shortMs = 100

const worlds = { patient: await OutageWorld.open(), impatient: await OutageWorld.open({ timeoutMs: shortMs }) }
afterAll(() => Promise.all([worlds.patient.stop(), worlds.impatient.stop()]))

function worldFor({ state }: Row): OutageWorld {
  return state === 'slow' ? worlds.impatient : worlds.patient
}

/** CI tries all rows (MATRIX=all). Here each state, age and operation meets one carrier of credentials. */
const tried = rows.filter(({ state, memory, carrier, operation }) => {
  const turn = states.indexOf(state) + Object.keys(memories).indexOf(memory) + operations.indexOf(operation)
  return process.env['MATRIX'] === 'all' || outageCarriers[turn % outageCarriers.length] === carrier
})

describe.each(states.map((state) => [state]))(`identity outage, ${tried.length} rows: the service is %s`, (state) => {
  for (const row of tried.filter((one) => one.state === state)) {
    const { memory, carrier, operation, expected } = row
    test(`and the credential is ${memory}: to ${operation} by ${carrier.name} is ${expected}`, async () => {
      expect(await tryRow(worldFor(row), row)).toEqual([])
    })
  }
})

describe('identity outage, afterwards', () => {
  test('every state, age, carrier and operation has its row', () => {
    expect(rows.length).toBe(13 * 4 * 6 * 4)
    expect(new Set(rows.map((row) => JSON.stringify(row))).size).toBe(rows.length)
    expect(new Set(tried.map(({ carrier }) => carrier)).size).toBe(outageCarriers.length)
  })

  test('no credential is in the log, though each request and each failure of the service has its line', () => {
    for (const world of Object.values(worlds)) {
      const failures = tried.filter((row) => worldFor(row) === world && row.expected === 503).length
      expect(failures).toBeGreaterThan(0)
      expect(world.findLeaks()).toEqual([])
      expect(world.logged.filter((line) => line.includes('request failed')).length).toBeGreaterThanOrEqual(failures)
    }
  })

  test('no credential was sent to the target of a redirect', () => {
    expect(worlds.patient.stub.strayCalls).toEqual([])
  })
})

describe('a thousand requests at once with one credential', () => {
  const crowd = 1_000

  test.each([
    ['good', 200],
    ['401', 401],
    ['503', 503],
  ] as const)('ask the service once, which is %s, and all get %i', async (state, status) => {
    const world = worlds.patient
    const { stub, port } = world
    await stub.set('good')
    // Closes the circuit breaker, whatever was before.
    await world.askWell(world.addPerson(), 'GET', '/v2/')
    const { secret } = world.addPerson()
    await stub.set(state)
    stub.calls.length = 0
    const { promise, resolve } = Promise.withResolvers<void>()
    stub.hold = promise
    // By sockets of our own: a client of this process would wait for its turn, and the server's question behind it.
    const asked = Array.from({ length: crowd }, () => askRaw(port, 'GET /v2/ HTTP/1.1', [`X-API-KEY: ${secret}`]))
    await until('all have come', async () => (await world.pending()) === crowd)
    resolve()
    const all = await Promise.all(asked)

    expect(new Set(all.map((reply) => reply.status))).toEqual(new Set([status]))
    expect(stub.calls).toEqual([{ path: '/api/2021-02-21/me', carrier: 'x-api-key', secret }])
  })
})
