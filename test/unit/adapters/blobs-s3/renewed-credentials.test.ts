// Credentials that end: when new ones are fetched, and which are used meanwhile.
import { describe, expect, test } from 'bun:test'
import { FixedCredentials, RenewedCredentials } from '../../../../src/adapters/blobs-s3/credentials.ts'
import type { S3Credentials } from '../../../../src/adapters/blobs-s3/signature-v4.ts'
import { errorOf } from '../../../support/basics/outcomes.ts'

const minuteMs = 60_000
const noon = 1_700_000_000_000

interface State {
  now: number
  asked: number
  answer: 'fail' | undefined
  lifeMs: number | undefined
}

/** A service that is asked for credentials; the test answers, or lets it answer by itself. */
function setUp(ms = 60 * minuteMs) {
  const state: State = { now: noon, asked: 0, answer: undefined, lifeMs: ms }
  const source = new RenewedCredentials(
    async (): Promise<S3Credentials> => {
      state.asked += 1
      const number = state.asked
      if (state.answer === 'fail') throw new Error(`failure ${number}`)
      const expiresAt = state.lifeMs === undefined ? undefined : state.now + state.lifeMs
      return { accessKeyId: `key ${number}`, secretAccessKey: 'secret', sessionToken: `token ${number}`, expiresAt }
    },
    () => state.now,
  )
  return { source, state }
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve()
}

function keyOf(credentials: S3Credentials | undefined): string | undefined {
  return credentials?.accessKeyId
}

describe('credentials', () => {
  test('are not there at first, and are fetched by the first call', async () => {
    const { source, state } = setUp()
    expect(source.current()).toBeUndefined()
    await settle()
    expect([keyOf(source.current()), state.asked]).toEqual(['key 1', 1])
  })

  test('are asked for once, however many want them', async () => {
    const { source, state } = setUp()
    source.current()
    const all = await Promise.all(Array.from({ length: 20 }, () => source.get()))
    expect([new Set(all).size, state.asked]).toEqual([1, 1])
    expect(source.current()).toBe(all[0])
  })

  test('are kept until ten minutes before their end, and then renewed while they are used', async () => {
    const { source, state } = setUp()
    await source.get()
    state.now += 49 * minuteMs
    expect([keyOf(await source.get()), state.asked]).toEqual(['key 1', 1])

    state.now += 2 * minuteMs
    expect([keyOf(await source.get()), state.asked]).toEqual(['key 1', 2])
    await settle()
    expect([keyOf(await source.get()), state.asked]).toEqual(['key 2', 2])
  })

  test('that live shortly are renewed in the last quarter of their life', async () => {
    const { source, state } = setUp(16 * minuteMs)
    await source.get()
    state.now += 11 * minuteMs
    source.current()
    expect(state.asked).toBe(1)
    state.now += 2 * minuteMs
    source.current()
    expect(state.asked).toBe(2)
  })

  test('that do not end are never renewed', async () => {
    const { source, state } = setUp()
    state.lifeMs = undefined
    await source.get()
    state.now += 365 * 24 * 60 * minuteMs
    await source.get()
    expect(state.asked).toBe(1)
  })

  test('that are good stay in use while no new ones are given, and are asked for every ten seconds', async () => {
    const { source, state } = setUp()
    await source.get()
    state.answer = 'fail'
    state.now += 55 * minuteMs
    for (let second = 0; second < 25; second += 1) {
      expect(keyOf(await source.get())).toBe('key 1')
      await settle()
      state.now += 1_000
    }
    expect(state.asked).toBe(1 + 3)
  })

  test('that ended are not given out', async () => {
    const { source, state } = setUp()
    await source.get()
    state.answer = 'fail'
    state.now += 60 * minuteMs
    expect(source.current()).toBeUndefined()
    await settle()
    expect(await errorOf(source.get())).toMatchObject({ message: 'failure 2' })
  })

  test('that cannot be fetched are an error, and are fetched again every second', async () => {
    const { source, state } = setUp()
    state.answer = 'fail'
    for (let third = 0; third < 7; third += 1) {
      expect(await errorOf(source.get())).toBeInstanceOf(Error)
      state.now += 334
    }
    expect(state.asked).toBe(3)
    state.answer = undefined
    state.now += 1_000
    expect(keyOf(await source.get())).toBe('key 4')
  })

  test('that come with their end behind them are used for some minutes: the clock here may be wrong', async () => {
    const { source, state } = setUp(-minuteMs)
    expect(keyOf(await source.get())).toBe('key 1')
    state.now += 3 * minuteMs
    expect([keyOf(await source.get()), state.asked]).toEqual(['key 1', 1])
    state.now += minuteMs
    await source.get()
    expect(state.asked).toBe(2)
  })

  test('are renewed where the clock was set back for long', async () => {
    const { source, state } = setUp()
    await source.get()
    state.now -= 24 * 60 * minuteMs
    expect(await source.renew(await source.get())).toBe(true)
  })
})

describe('credentials that S3 refused', () => {
  test('are renewed at once, once for all that were refused', async () => {
    const { source, state } = setUp()
    const refused = await source.get()
    state.now += 10_000
    const all = await Promise.all(Array.from({ length: 10 }, () => source.renew(refused)))
    expect([new Set(all), state.asked, keyOf(await source.get())]).toEqual([new Set([true]), 2, 'key 2'])
    expect([await source.renew(refused), state.asked]).toEqual([true, 2])
  })

  test('are not asked for again and again', async () => {
    const { source, state } = setUp()
    const first = await source.get()
    state.now += 1_000
    expect([await source.renew(first), state.asked]).toEqual([false, 1])
  })

  test('are told as the same where they are the same', async () => {
    const same = { accessKeyId: 'a', secretAccessKey: 'b', sessionToken: undefined, expiresAt: undefined }
    let now = noon
    const source = new RenewedCredentials(
      async () => ({ ...same }),
      () => now,
    )
    const refused = await source.get()
    now += minuteMs
    expect(await source.renew(refused)).toBe(false)
  })

  test('that are fixed stay as they are', async () => {
    const source = new FixedCredentials('id', 'secret', undefined)
    expect([await source.renew(), await source.get(), source.current().accessKeyId]).toEqual([
      false,
      source.current(),
      'id',
    ])
  })
})
