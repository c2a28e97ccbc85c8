// When the public keys are fetched, and which count meanwhile.
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { KeySet } from '../../../../src/adapters/identity-remote/key-set.ts'
import { Unavailable } from '../../../../src/oci/errors.ts'
import { errorOf } from '../../../support/basics/outcomes.ts'
import { until } from '../../../support/clocks/until.ts'
import { noon } from '../../../support/identity/remote-identity.ts'
import { TokenIssuer, type TokenIssuerState } from '../../../support/identity/token-issuer.ts'

const rules = { algorithms: ['ES256'] }
const minuteMs = 60_000
const maxAgeMs = 10 * minuteMs

let now = noon
let service = await TokenIssuer.start()
let keys = new KeySet(service.jwksUrl, { now: () => now })

beforeEach(async () => {
  now = noon
  service = await TokenIssuer.start()
  keys = new KeySet(service.jwksUrl, { now: () => now })
})

afterEach(() => service.stop())

async function isGood(token: string): Promise<boolean> {
  return (await keys.verify(token, rules)) !== undefined
}

async function isUnknowable(token: string): Promise<boolean> {
  return (await errorOf(keys.verify(token, rules))) instanceof Unavailable
}

/** A key that the service has begun to sign with, and publishes. */
async function rotate(): Promise<string> {
  return service.sign({ exp: noon / 1000 + 86_400 }, { key: await service.addKey() })
}

async function lastingToken(): Promise<string> {
  return service.sign({ exp: noon / 1000 + 86_400 })
}

describe('the set of keys', () => {
  test('is fetched when the first token comes, once for all that come together', async () => {
    expect(service.calls).toBe(0)
    const token = await service.sign()
    const all = await Promise.all(Array.from({ length: 100 }, () => isGood(token)))

    expect([new Set(all), service.calls]).toEqual([new Set([true]), 1])
  })

  test('is fetched again after ten minutes, and not before', async () => {
    const token = await lastingToken()
    await isGood(token)
    now += maxAgeMs - 1
    await isGood(token)
    expect(service.calls).toBe(1)
    now += 1
    await isGood(token)

    expect(service.calls).toBe(2)
  })

  test('counts no key that was withdrawn once it is fetched again', async () => {
    const token = await lastingToken()
    const other = await rotate()
    expect([await isGood(token), await isGood(other)]).toEqual([true, true])
    service.keys = service.keys.slice(1)
    now += maxAgeMs

    expect([await isGood(token), await isGood(other)]).toEqual([false, true])
  })
})

describe('an unknown key', () => {
  test('makes the set be fetched once, and then not for half a minute', async () => {
    await isGood(await lastingToken())
    now += 30_000
    const made = await service.sign({ exp: noon / 1000 + 86_400 }, { header: { kid: 'made up' } })
    expect([await isGood(made), service.calls]).toEqual([false, 2])
    now += 29_999
    expect([await isGood(made), service.calls]).toEqual([false, 2])
    now += 1

    expect([await isGood(made), service.calls]).toEqual([false, 3])
  })

  test('is good at once when the service has published it meanwhile', async () => {
    const old = await lastingToken()
    await isGood(old)
    now += 30_000
    const fresh = await rotate()

    expect([await isGood(fresh), await isGood(old), service.calls]).toEqual([true, true, 2])
  })

  test('of many tokens makes the set be fetched once', async () => {
    await isGood(await lastingToken())
    now += 30_000
    const made = await Promise.all(
      [1, 2, 3, 4, 5].map((kid) => service.sign({}, { header: { kid: `made up ${kid}` } })),
    )
    await Promise.all(made.map(isGood))

    expect(service.calls).toBe(2)
  })

  test('makes nothing be fetched for a token whose algorithm does not count', async () => {
    await isGood(await lastingToken())
    now += 30_000
    const key = await service.addKey('ES512', 'made up')

    expect([await isGood(await service.sign({}, { key })), service.calls]).toEqual([false, 1])
  })
})

const failures: readonly TokenIssuerState[] = ['500', 'html', 'no keys', 'keys that are none', 'redirect']

describe.each(failures)('while the service of the keys is %s', (state) => {
  test('and there are none, the result is unavailable', async () => {
    service.state = state
    expect(await isUnknowable(await service.sign())).toBe(true)
  })

  test('an older set goes on to count, for as long as that lasts', async () => {
    const token = await lastingToken()
    await isGood(token)
    service.state = state
    for (let hour = 1; hour <= 12; hour += 1) {
      now += 60 * minuteMs
      expect(await isGood(token)).toBe(true)
    }
    service.state = 'good'
    service.keys = []

    await until('the withdrawn key is gone', async () => {
      now += 5_000
      return !(await isGood(token))
    })
  })

  test('a key that is not in the older set is reported as unavailable', async () => {
    await isGood(await lastingToken())
    now += minuteMs
    service.state = state
    const fresh = await rotate()
    expect(await isUnknowable(fresh)).toBe(true)
    service.state = 'good'
    now += 5_000

    expect(await isGood(fresh)).toBe(true)
  })
})

describe('a service of keys that fails', () => {
  test('gets no request for five seconds', async () => {
    service.state = '500'
    const token = await service.sign()
    await isUnknowable(token)
    now += 4_999
    await isUnknowable(token)
    expect(service.calls).toBe(1)
    service.state = 'good'
    now += 1

    expect([await isGood(token), service.calls]).toEqual([true, 2])
  })

  test('delays no caller if there is an older set: the service is asked again in the background', async () => {
    const token = await lastingToken()
    await isGood(token)
    service.state = '500'
    now += maxAgeMs
    await isGood(token)
    expect(service.calls).toBe(2)
    await isGood(token)
    expect(service.calls).toBe(2)
    now += 5_000
    const { promise, resolve } = Promise.withResolvers<void>()
    service.hold = promise
    expect(await isGood(token)).toBe(true)

    await until('it is asked again', () => service.calls === 3)
    resolve()
  })

  test('is waited for again once it has answered: a key that was withdrawn since counts no more', async () => {
    const token = await lastingToken()
    await isGood(token)
    service.state = '500'
    now += maxAgeMs
    await isGood(token)
    service.state = 'good'
    now += 5_000
    // An unknown key waits for the set, whatever else is known.
    await isGood(await service.sign({ exp: noon / 1000 + 86_400 }, { header: { kid: 'made up' } }))
    expect(service.calls).toBe(3)
    service.keys = []
    now += maxAgeMs

    expect(await isGood(token)).toBe(false)
  })

  test('at an address that refuses connections is unavailable', async () => {
    await service.stop()

    expect(await isUnknowable(await service.sign())).toBe(true)
  })
})
