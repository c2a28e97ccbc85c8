// When the public keys are fetched, and which are valid meanwhile.
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { KeySet } from '../../../../src/adapters/identity-remote/key-set.ts'
import { Unavailable } from '../../../../src/oci/errors.ts'
import { until } from '../../../support/clocks/until.ts'
import { noon } from '../../../support/identity/remote-identity.ts'
import { TokenIssuer, type TokenIssuerState } from '../../../support/identity/token-issuer.ts'

const minuteMs = 60_000
const maxAgeMs = 10 * minuteMs

let now = noon
let service = await TokenIssuer.start()
let keys = new KeySet(service.jwksUrl, { now: () => now })
let [oldKey, newKey] = service.keys
let tokens: Readonly<Record<string, string>> = {}

beforeEach(async () => {
  now = noon
  service = await TokenIssuer.start()
  keys = new KeySet(service.jwksUrl, { now: () => now })
  const claims = { exp: noon / 1000 + 86_400 }
  oldKey = service.keys[0]
  newKey = await service.addKey()
  const otherKey = await service.addKey('ES512', 'other')
  service.keys = service.keys.slice(0, 1)
  tokens = {
    old: await service.sign(claims),
    new: await service.sign(claims, { key: newKey }),
    unknown: await service.sign(claims, { header: { kid: 'made up' } }),
    'of an algorithm that is not accepted': await service.sign(claims, { key: otherKey }),
  }
})

afterEach(() => service.stop())

function verdictOn(token: string): Promise<'good' | 'bad' | 'unavailable'> {
  return keys.verify(token, { algorithms: ['ES256'] }).then(
    (claims) => (claims === undefined ? 'bad' : 'good'),
    (error: unknown) => {
      expect(error).toBeInstanceOf(Unavailable)
      return 'unavailable'
    },
  )
}

/** What the service does; or so much later, the verdict on a token, and how many requests it took since the beginning. */
type Step =
  | 'publish the new key'
  | 'withdraw the old key'
  | TokenIssuerState
  | readonly [laterMs: number, token: string, verdict: string, calls: number]

const lives: readonly (readonly [words: string, ...steps: Step[]])[] = [
  [
    'is fetched for the first token, and again after ten minutes',
    [0, 'old', 'good', 1],
    [maxAgeMs - 1, 'old', 'good', 1],
    [1, 'old', 'good', 2],
  ],
  [
    'does not contain a withdrawn key once it is fetched again',
    'publish the new key',
    [0, 'old', 'good', 1],
    [0, 'new', 'good', 1],
    'withdraw the old key',
    [maxAgeMs, 'old', 'bad', 2],
    [0, 'new', 'good', 2],
  ],
  [
    'is fetched for an unknown key, but at most every half minute',
    [0, 'old', 'good', 1],
    [30_000, 'unknown', 'bad', 2],
    [29_999, 'unknown', 'bad', 2],
    [1, 'unknown', 'bad', 3],
  ],
  [
    'contains a new key as soon as the service has published it',
    [0, 'old', 'good', 1],
    'publish the new key',
    [30_000, 'new', 'good', 2],
    [0, 'old', 'good', 2],
  ],
  [
    'is not fetched for an algorithm that is not accepted',
    [0, 'old', 'good', 1],
    [30_000, 'of an algorithm that is not accepted', 'bad', 1],
  ],
  [
    'is not fetched for five seconds after a failure',
    '500',
    [0, 'old', 'unavailable', 1],
    [4_999, 'old', 'unavailable', 1],
    'good',
    [1, 'old', 'good', 2],
  ],
  [
    'is waited for again once the service has answered',
    [0, 'old', 'good', 1],
    '500',
    [maxAgeMs, 'old', 'good', 2],
    'good',
    // An unknown key waits for the set.
    [5_000, 'unknown', 'bad', 3],
    'withdraw the old key',
    [maxAgeMs, 'old', 'bad', 4],
  ],
]

async function follow(steps: readonly Step[]): Promise<void> {
  for (const step of steps) {
    if (step === 'publish the new key') service.keys = [oldKey, newKey].filter((key) => key !== undefined)
    else if (step === 'withdraw the old key') service.keys = service.keys.filter((key) => key !== oldKey)
    else if (typeof step === 'string') service.state = step
    else {
      const [laterMs, token, verdict, calls] = step
      now += laterMs
      expect([token, await verdictOn(tokens[token] ?? ''), service.calls]).toEqual([token, verdict, calls])
    }
  }
}

describe('the set of keys', () => {
  test.each(lives)('%s', (_, ...steps) => follow(steps))

  test('is fetched once for many tokens at the same time, with known keys or unknown ones', async () => {
    const { old = '', unknown = '' } = tokens
    const all = await Promise.all(Array.from({ length: 100 }, () => verdictOn(old)))
    expect([new Set(all), service.calls]).toEqual([new Set(['good']), 1])
    now += 30_000
    await Promise.all(Array.from({ length: 5 }, () => verdictOn(unknown)))
    expect(service.calls).toBe(2)
  })
})

const failures: readonly TokenIssuerState[] = ['500', 'html', 'no keys', 'keys that are none', 'redirect']

describe.each(failures)('while the service of the keys is %s', (state) => {
  test('tokens are unavailable if there are no keys, or if they need a key that is not in the older set', async () => {
    await follow([state, [0, 'old', 'unavailable', 1], 'good', [5_000, 'old', 'good', 2], state, 'publish the new key'])
    await follow([[minuteMs, 'new', 'unavailable', 3], 'good', [5_000, 'new', 'good', 4]])
  })

  test('an older set stays valid as long as that lasts, and is replaced afterwards', async () => {
    const { old = '' } = tokens
    await verdictOn(old)
    service.state = state
    for (let hour = 1; hour <= 12; hour += 1) {
      now += 60 * minuteMs
      expect(await verdictOn(old)).toBe('good')
    }
    service.state = 'good'
    service.keys = []

    await until('the withdrawn key is gone', async () => {
      now += 5_000
      return (await verdictOn(old)) === 'bad'
    })
  })
})

test('a failed service delays no caller if there is an older set: it is asked again in the background', async () => {
  await follow([[0, 'old', 'good', 1], '500', [maxAgeMs, 'old', 'good', 2], [0, 'old', 'good', 2]])
  now += 5_000
  const { promise, resolve } = Promise.withResolvers<void>()
  service.hold = promise
  expect(await verdictOn(tokens['old'] ?? '')).toBe('good')

  await until('it is asked again', () => service.calls === 3)
  resolve()
})

test('a service at an address that refuses connections makes tokens unavailable', async () => {
  await service.stop()

  expect(await verdictOn(tokens['old'] ?? '')).toBe('unavailable')
})
