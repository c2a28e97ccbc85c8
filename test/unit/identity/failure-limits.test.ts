import { describe, expect, test } from 'bun:test'
import { Trial, usual } from '../../support/identity/limits-trial.ts'

describe('an address that tries many credentials', () => {
  test('has its burst, and is then refused for the pause', async () => {
    const trial = new Trial()

    expect(await trial.guessUntilRefused()).toBe(20)
    expect(await trial.waitFor({ credential: 'never seen' })).toBe(30)
    trial.now += 29_999
    expect(await trial.waitFor({})).toBe(1)
    trial.now += 1
    expect(await trial.waitFor({})).toBe(0)
  })

  test('has afterwards what the pause has given back, no more', async () => {
    const trial = new Trial()
    await trial.guessUntilRefused()
    trial.now += 30_000

    expect(await trial.guessUntilRefused()).toBe(5)
  })

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

  test('does not trouble another address', async () => {
    const trial = new Trial()
    await trial.guessUntilRefused()

    expect(await trial.waitFor({ from: 'b' })).toBe(0)
    expect(await trial.guessUntilRefused({ from: 'b' })).toBe(20)
  })

  test('with a burst of 1 has one try', async () => {
    expect(await new Trial({ burst: 1 }).guessUntilRefused()).toBe(1)
  })
})

describe('one bad credential that is used again and again', () => {
  test('costs its address one failure, and is refused itself', async () => {
    const trial = new Trial()
    for (let tries = 0; tries < 20; tries += 1) {
      expect(await trial.waitFor({ credential: 'old key' })).toBe(0)
      await trial.fail({ credential: 'old key' })
    }

    expect(await trial.waitFor({ credential: 'old key' })).toBe(30)
    expect(await trial.waitFor({ credential: 'another' })).toBe(0)
    expect(await trial.guessUntilRefused()).toBe(19)
  })

  test('is refused from wherever it comes', async () => {
    const trial = new Trial()
    for (let tries = 0; tries < 20; tries += 1) await trial.fail({ credential: 'old key', from: `address ${tries}` })

    expect(await trial.waitFor({ credential: 'old key', from: 'yet another' })).toBe(30)
    expect(await trial.waitFor({ credential: 'another', from: 'address 1' })).toBe(0)
  })

  test('is not counted together with others of the same beginning', async () => {
    const trial = new Trial()
    const long = 'x'.repeat(5_000)
    for (let tries = 0; tries < 20; tries += 1) await trial.fail({ credential: `${long}1` })

    expect(await trial.waitFor({ credential: `${long}1` })).toBe(30)
    expect(await trial.waitFor({ credential: `${long}2` })).toBe(0)
  })
})

describe('passwords of one user', () => {
  const password = (user: string, guess: number | string) => ({ credential: `${user}\n${guess}`, target: user })

  test('are each a guess of their own, and cost the address each time', async () => {
    const trial = new Trial({ burst: 5 })
    for (const user of ['ann', 'bob']) {
      await trial.fail(password(user, 1))
      await trial.fail(password(user, 2))
    }
    expect(await trial.waitFor(password('carl', 1))).toBe(0)
    await trial.fail(password('ann', 3))

    expect(await trial.waitFor(password('carl', 1))).toBe(30)
    expect(await trial.waitFor({ ...password('ann', 4), from: 'b' })).toBe(0)
  })

  test('cost nothing more when they are tried again', async () => {
    const trial = new Trial({ burst: 5 })
    for (let tries = 0; tries < 5; tries += 1) await trial.fail(password('ann', 'the old one'))

    expect(await trial.waitFor(password('ann', 'the old one'))).toBe(30)
    expect(await trial.waitFor(password('ann', 'the new one'))).toBe(0)
  })

  test('are held back by user from however many addresses, but not by a few that want to lock him out', async () => {
    const trial = new Trial()
    const guess = (number: number) => trial.fail({ ...password('ann', number), from: `address ${number % 50}` })
    for (let tries = 0; tries < 199; tries += 1) {
      await guess(tries)
      trial.now += 11
    }
    expect(await trial.waitFor({ ...password('ann', 'hers'), from: 'her own' })).toBe(0)
    for (let tries = 199; tries < 250; tries += 1) await guess(tries)

    expect(await trial.waitFor({ ...password('ann', 'hers'), from: 'her own' })).toBeGreaterThan(0)
    expect(await trial.waitFor({ ...password('bob', 'his'), from: 'his own' })).toBe(
      await trial.waitFor({ from: 'anybody' }),
    )
  })
})

describe('a credential that was good lately', () => {
  test('is looked at although its address, or everybody, is held back', async () => {
    const trial = new Trial()
    await trial.succeed({ credential: 'good' })
    await trial.guessUntilRefused()
    for (let tries = 0; tries < 400; tries += 1) await trial.fail({ from: `address ${tries}` })

    expect(await trial.waitFor({ credential: 'new' })).toBeGreaterThan(0)
    expect(await trial.waitFor({ credential: 'good' })).toBe(0)
  })

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

  test('are not locked out by who has many addresses: 100 a second are let through', async () => {
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

describe('who floods the limits to be forgotten by them', () => {
  test('cannot do it from one address: what is refused leaves nothing behind', async () => {
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
