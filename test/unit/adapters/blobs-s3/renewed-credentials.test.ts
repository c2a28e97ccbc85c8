// Credentials that expire: when new ones are fetched, and which are used meanwhile.
import { describe, expect, test } from 'bun:test'
import { FixedCredentials, RenewedCredentials } from '../../../../src/adapters/blobs-s3/credentials.ts'
import type { S3Credentials } from '../../../../src/adapters/blobs-s3/signature-v4.ts'

const secondMs = 1_000
const minuteMs = 60_000
const dayMs = 24 * 60 * minuteMs
const noon = 1_700_000_000_000

/** A source whose service answers with a new key each time, or fails. */
function openSource(lifeMs: number | undefined) {
  const state = { now: noon, fetches: 0, fails: false }
  const source = new RenewedCredentials(
    async (): Promise<S3Credentials> => {
      state.fetches += 1
      const number = state.fetches
      if (state.fails) throw new Error(`failure ${number}`)
      const expiresAt = lifeMs === undefined ? undefined : state.now + lifeMs
      return { accessKeyId: `key ${number}`, secretAccessKey: 'secret', sessionToken: `token ${number}`, expiresAt }
    },
    () => state.now,
  )
  const get = () =>
    source.get().then(
      ({ accessKeyId }) => accessKeyId,
      (error: Error) => error.message,
    )
  return { source, state, get }
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve()
}

/** So much later, `get` gives this key or fails with this error, and so many fetches have begun. */
type Step = readonly [laterMs: number, result: string, fetches: number, then?: 'fails' | 'recovers']

const lives: readonly (readonly [words: string, lifeMs: number | undefined, steps: readonly Step[]])[] = [
  [
    'are renewed ten minutes before they expire, in the background',
    60 * minuteMs,
    [
      [0, 'key 1', 1],
      [49 * minuteMs, 'key 1', 1],
      [2 * minuteMs, 'key 1', 2],
      [0, 'key 2', 2],
    ],
  ],
  [
    'that live shortly are renewed in the last quarter of their life',
    16 * minuteMs,
    [
      [0, 'key 1', 1],
      [11 * minuteMs, 'key 1', 1],
      [2 * minuteMs, 'key 1', 2],
    ],
  ],
  [
    'that do not expire are never renewed',
    undefined,
    [
      [0, 'key 1', 1],
      [365 * dayMs, 'key 1', 1],
    ],
  ],
  [
    'that are valid stay in use while none can be fetched, which is tried every ten seconds',
    60 * minuteMs,
    [
      [0, 'key 1', 1, 'fails'],
      [55 * minuteMs, 'key 1', 2],
      [10 * secondMs - 1, 'key 1', 2],
      [1, 'key 1', 3],
    ],
  ],
  [
    'that have expired are not used, even if none can be fetched',
    60 * minuteMs,
    [
      [0, 'key 1', 1, 'fails'],
      [60 * minuteMs, 'failure 2', 2],
    ],
  ],
  [
    'that cannot be fetched are an error, and are fetched again after a second',
    60 * minuteMs,
    [
      [0, 'key 1', 1, 'fails'],
      [120 * minuteMs, 'failure 2', 2],
      [secondMs - 1, 'failure 2', 2],
      [1, 'failure 3', 3, 'recovers'],
      [secondMs, 'key 4', 4],
    ],
  ],
  [
    'that seem to have expired when they arrive are used for some minutes, because our clock may be wrong',
    -minuteMs,
    [
      [0, 'key 1', 1],
      [3 * minuteMs, 'key 1', 1],
      [minuteMs, 'key 1', 2],
    ],
  ],
]

describe('credentials', () => {
  test.each(lives)('%s', async (_, lifeMs, steps) => {
    const { state, get } = openSource(lifeMs)
    for (const [laterMs, result, fetches, then] of steps) {
      state.now += laterMs
      expect([await get(), state.fetches]).toEqual([result, fetches])
      if (then !== undefined) state.fails = then === 'fails'
      await settle()
    }
  })

  test('are fetched once, by the first of many callers', async () => {
    const { source, state } = openSource(60 * minuteMs)
    expect(source.current()).toBeUndefined()
    const all = await Promise.all(Array.from({ length: 20 }, () => source.get()))
    expect([new Set(all).size, state.fetches]).toEqual([1, 1])
    expect(source.current()).toBe(all[0])
  })
})

describe('credentials that S3 rejected', () => {
  test('are renewed at once, once for all requests, but not again and again', async () => {
    const { source, state, get } = openSource(60 * minuteMs)
    const first = await source.get()
    state.now += secondMs
    expect([await source.renew(first), state.fetches]).toEqual([false, 1])
    state.now += 10 * secondMs
    const all = await Promise.all(Array.from({ length: 10 }, () => source.renew(first)))
    expect([new Set(all), state.fetches, await get()]).toEqual([new Set([true]), 2, 'key 2'])
    expect([await source.renew(first), state.fetches]).toEqual([true, 2])
  })

  test('are renewed even if the clock was set back by a day', async () => {
    const { source, state } = openSource(60 * minuteMs)
    const rejected = await source.get()
    state.now -= dayMs
    expect(await source.renew(rejected)).toBe(true)
  })

  test('are not different if the service gives the same ones again, or if they are fixed', async () => {
    const same = { accessKeyId: 'a', secretAccessKey: 'b', sessionToken: undefined, expiresAt: undefined }
    let now = noon
    const source = new RenewedCredentials(
      async () => ({ ...same }),
      () => now,
    )
    const rejected = await source.get()
    now += minuteMs
    expect(await source.renew(rejected)).toBe(false)

    const fixed = new FixedCredentials('id', 'secret', undefined)
    expect([await fixed.renew(), await fixed.get(), fixed.current().accessKeyId]).toEqual([
      false,
      fixed.current(),
      'id',
    ])
  })
})
