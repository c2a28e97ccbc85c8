import { describe, expect, test } from 'bun:test'
import { Trial, usual } from '../../support/identity/limits-trial.ts'

describe('an address that tries many credentials', () => {
  test.each([
    ['as they are', usual],
    ['with a short pause', { ...usual, pauseMs: 1_000 }],
    ['with one a minute', { perMinute: 1, burst: 1, pauseMs: 1_000 }],
    ['with ten a second', { perMinute: 600, burst: 3, pauseMs: 1_000 }],
  ])('comes in the long run to no more than its failures a minute: settings %s', async (_, settings) => {
    const minutes = 60
    const trial = new Trial(settings)
    const end = trial.now + minutes * 60_000
    let failures = 0
    while (trial.now < end) {
      failures += await trial.guessUntilRefused()
      trial.now += (await trial.waitFor({})) * 1000
    }

    expect(failures).toBeWithin(1, settings.burst + settings.perMinute * minutes + 1)
  })

  test('has its whole burst again after a quiet time, however long', async () => {
    const trial = new Trial()
    await trial.guessUntilRefused()
    trial.now += 24 * 3_600_000

    expect(await trial.guessUntilRefused()).toBe(20)
  })

  test('with a burst of 1 has one try', async () => {
    expect(await new Trial({ burst: 1 }).guessUntilRefused()).toBe(1)
  })
})

describe('one bad credential that is used again and again', () => {
  test('is not counted together with others of the same beginning', async () => {
    const trial = new Trial()
    const long = 'x'.repeat(5_000)
    for (let tries = 0; tries < 20; tries += 1) await trial.fail({ credential: `${long}1` })

    expect(await trial.waitFor({ credential: `${long}1` })).toBe(30)
    expect(await trial.waitFor({ credential: `${long}2` })).toBe(0)
  })
})

describe('a credential that was good lately', () => {
  test('is so for an hour, or until it fails', async () => {
    const trial = new Trial({ pauseMs: 7_200_000 })
    for (const credential of ['good', 'revoked']) await trial.succeed({ credential })
    await trial.guessUntilRefused()
    await trial.fail({ credential: 'revoked' })

    expect(await trial.waitFor({ credential: 'revoked' })).toBeGreaterThan(0)
    trial.now += 3_599_999
    expect(await trial.waitFor({ credential: 'good' })).toBe(0)
    trial.now += 1
    expect(await trial.waitFor({ credential: 'good' })).toBeGreaterThan(0)
  })
})

describe('all together', () => {
  test('are refused for a moment only, after 200 failures at once', async () => {
    const trial = new Trial()
    for (let tries = 0; tries < 199; tries += 1) await trial.fail({ from: `address ${tries}` })
    expect(await trial.waitFor({ from: 'yet another' })).toBe(0)
    await trial.fail({ from: 'one more' })

    expect(await trial.waitFor({ from: 'yet another' })).toBe(1)
    trial.now += 10
    expect(await trial.waitFor({ from: 'yet another' })).toBe(0)
  })

  test('are not locked out by an attacker with many addresses: 100 attempts a second are allowed', async () => {
    const trial = new Trial()
    let tried = 0
    let refused = 0
    for (let ms = 0; ms < 10_000; ms += 1) {
      trial.now += 1
      // A thousand a second, each from an address of its own.
      if ((await trial.waitFor({ from: `address ${ms}` })) === 0) {
        tried += 1
        await trial.fail({ from: `address ${ms}` })
      } else refused += 1
    }

    expect(tried).toBeWithin(1_100, 1_301)
    expect(refused).toBe(10_000 - tried)
  })
})

/** Nothing more is taken from the network `x`, nor `one key` from anywhere. */
async function exhaust(trial: Trial): Promise<void> {
  for (let tries = 0; tries < 20; tries += 1) await trial.fail({ from: 'y', credential: 'one key' })
  for (let tries = 0; tries < 20; tries += 1) await trial.fail({ from: 'x' })
}

describe('an attacker who tries to push an address out of the memory of the limits', () => {
  test('cannot do it from one address: refused attempts are not remembered', async () => {
    const trial = new Trial()
    await exhaust(trial)
    let letIn = 0
    for (let tries = 0; tries < 100_000; tries += 1) {
      trial.now += 0.1
      if ((await trial.waitFor({ from: 'x', credential: `flood ${tries}` })) > 0) continue
      letIn += 1
      await trial.fail({ from: 'x', credential: `flood ${tries}` })
    }

    expect(letIn).toBe(0)
    expect(await trial.waitFor({ credential: 'one key', from: 'y' })).toBe(20)
  })

  test('nor within the pause from as many addresses as there are', async () => {
    const trial = new Trial()
    await exhaust(trial)
    for (let tries = 0; tries < 290_000; tries += 1) {
      trial.now += 0.1
      const attempt = { from: `address ${tries}`, credential: `flood ${tries}` }
      if ((await trial.waitFor(attempt)) === 0) await trial.fail(attempt)
    }
    trial.now += 20

    expect(await trial.waitFor({ from: 'x', credential: 'new' })).toBe(1)
    expect(await trial.waitFor({ from: 'y', credential: 'one key' })).toBe(1)
  })
})

describe('a clock that is set', () => {
  test('forward ends the pause', async () => {
    const trial = new Trial()
    await trial.guessUntilRefused()
    trial.now += 365 * 24 * 3_600_000

    expect(await trial.waitFor({})).toBe(0)
  })

  test('back does not make a pause of a day', async () => {
    const trial = new Trial()
    await trial.guessUntilRefused()
    trial.now -= 24 * 3_600_000

    expect(await trial.waitFor({})).toBe(0)
    await trial.fail({})
    expect(await trial.waitFor({})).toBe(30)
  })
})
