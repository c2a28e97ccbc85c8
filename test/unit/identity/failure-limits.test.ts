import { describe, expect, test } from 'bun:test'
import { Trial, usual } from '../../support/limits-trial.ts'
import { refusalOf } from '../../support/refusal-of.ts'

describe('an address that tries many credentials', () => {
  test('has its burst, and is then refused for the pause', () => {
    const trial = new Trial()

    expect(trial.guessUntilRefused()).toBe(20)
    expect(trial.waitFor({ credential: 'never seen' })).toBe(30)
    trial.now += 29_999
    expect(trial.waitFor({})).toBe(1)
    trial.now += 1
    expect(trial.waitFor({})).toBe(0)
  })

  test('has afterwards what the pause has given back, no more', () => {
    const trial = new Trial()
    trial.guessUntilRefused()
    trial.now += 30_000

    expect(trial.guessUntilRefused()).toBe(5)
  })

  test.each([
    ['as they are', usual],
    ['with a short pause', { ...usual, pauseMs: 1_000 }],
    ['with one a minute', { perMinute: 1, burst: 1, pauseMs: 1_000 }],
    ['with ten a second', { perMinute: 600, burst: 3, pauseMs: 1_000 }],
  ])('comes in the long run to no more than its failures a minute: settings %s', (_, settings) => {
    const minutes = 60
    const trial = new Trial(settings)
    const end = trial.now + minutes * 60_000
    let failures = 0
    while (trial.now < end) {
      failures += trial.guessUntilRefused()
      trial.now += trial.waitFor({}) * 1000
    }

    expect(failures).toBeWithin(1, settings.burst + settings.perMinute * minutes + 1)
  })

  test('has its whole burst again after a quiet time, however long', () => {
    const trial = new Trial()
    trial.guessUntilRefused()
    trial.now += 24 * 3_600_000

    expect(trial.guessUntilRefused()).toBe(20)
  })

  test('does not trouble another address', () => {
    const trial = new Trial()
    trial.guessUntilRefused()

    expect(trial.waitFor({ from: 'b' })).toBe(0)
    expect(trial.guessUntilRefused({ from: 'b' })).toBe(20)
  })

  test('with a burst of 1 has one try', () => {
    expect(new Trial({ burst: 1 }).guessUntilRefused()).toBe(1)
  })

  test('pays for what was let in at once before any of it had failed', () => {
    const trial = new Trial()
    for (let tries = 0; tries < 30; tries += 1) trial.fail({})

    // 10 more than the burst: a debt of 10, and 1 to have something again, at 10 a minute.
    expect(trial.waitFor({})).toBe(66)
  })

  test('never owes more than a burst', () => {
    const trial = new Trial()
    for (let tries = 0; tries < 5_000; tries += 1) trial.fail({})

    expect(trial.waitFor({ from: 'a' })).toBe(126)
  })
})

describe('one bad credential that is used again and again', () => {
  test('costs its address one failure, and is refused itself', () => {
    const trial = new Trial()
    for (let tries = 0; tries < 20; tries += 1) {
      expect(trial.waitFor({ credential: 'old key' })).toBe(0)
      trial.fail({ credential: 'old key' })
    }

    expect(trial.waitFor({ credential: 'old key' })).toBe(30)
    expect(trial.waitFor({ credential: 'another' })).toBe(0)
    expect(trial.guessUntilRefused()).toBe(19)
  })

  test('is refused from wherever it comes', () => {
    const trial = new Trial()
    for (let tries = 0; tries < 20; tries += 1) trial.fail({ credential: 'old key', from: `address ${tries}` })

    expect(trial.waitFor({ credential: 'old key', from: 'yet another' })).toBe(30)
    expect(trial.waitFor({ credential: 'another', from: 'address 1' })).toBe(0)
  })

  test('is not counted together with others of the same beginning', () => {
    const trial = new Trial()
    const long = 'x'.repeat(5_000)
    for (let tries = 0; tries < 20; tries += 1) trial.fail({ credential: `${long}1` })

    expect(trial.waitFor({ credential: `${long}1` })).toBe(30)
    expect(trial.waitFor({ credential: `${long}2` })).toBe(0)
  })
})

describe('passwords of one user', () => {
  const password = (user: string, guess: number | string) => ({ credential: `${user}\n${guess}`, target: user })

  test('are each a guess of their own, and cost the address each time', () => {
    const trial = new Trial({ burst: 5 })
    for (const user of ['ann', 'bob']) {
      trial.fail(password(user, 1))
      trial.fail(password(user, 2))
    }
    expect(trial.waitFor(password('carl', 1))).toBe(0)
    trial.fail(password('ann', 3))

    expect(trial.waitFor(password('carl', 1))).toBe(30)
    expect(trial.waitFor({ ...password('ann', 4), from: 'b' })).toBe(0)
  })

  test('cost nothing more when they are tried again', () => {
    const trial = new Trial({ burst: 5 })
    for (let tries = 0; tries < 5; tries += 1) trial.fail(password('ann', 'the old one'))

    expect(trial.waitFor(password('ann', 'the old one'))).toBe(30)
    expect(trial.waitFor(password('ann', 'the new one'))).toBe(0)
  })

  test('are held back by user from however many addresses, but not by a few that want to lock him out', () => {
    const trial = new Trial()
    const guess = (number: number) => trial.fail({ ...password('ann', number), from: `address ${number % 50}` })
    for (let tries = 0; tries < 199; tries += 1) {
      guess(tries)
      trial.now += 11
    }
    expect(trial.waitFor({ ...password('ann', 'hers'), from: 'her own' })).toBe(0)
    for (let tries = 199; tries < 250; tries += 1) guess(tries)

    expect(trial.waitFor({ ...password('ann', 'hers'), from: 'her own' })).toBeGreaterThan(0)
    expect(trial.waitFor({ ...password('bob', 'his'), from: 'his own' })).toBe(trial.waitFor({ from: 'anybody' }))
  })
})

describe('a credential that was good lately', () => {
  test('is looked at although its address, or everybody, is held back', () => {
    const trial = new Trial()
    trial.limits.noteSuccess({ from: 'a', credential: 'good' })
    trial.guessUntilRefused()
    for (let tries = 0; tries < 400; tries += 1) trial.fail({ from: `address ${tries}` })

    expect(trial.waitFor({ credential: 'new' })).toBeGreaterThan(0)
    expect(trial.waitFor({ credential: 'good' })).toBe(0)
  })

  test('is so for an hour, or until it fails', () => {
    const trial = new Trial({ pauseMs: 7_200_000 })
    for (const credential of ['good', 'revoked']) trial.limits.noteSuccess({ from: 'a', credential })
    trial.guessUntilRefused()
    trial.fail({ credential: 'revoked' })

    expect(trial.waitFor({ credential: 'revoked' })).toBeGreaterThan(0)
    trial.now += 3_599_999
    expect(trial.waitFor({ credential: 'good' })).toBe(0)
    trial.now += 1
    expect(trial.waitFor({ credential: 'good' })).toBeGreaterThan(0)
  })
})

describe('guesses that come together', () => {
  test('are let in as far as they may fail, and as they are done with', () => {
    const { limits } = new Trial({ burst: 3 })
    const guess = (number: number) => ({ from: 'a', credential: `ann\n${number}`, target: 'ann' })
    const letIn = (number: number) => refusalOf(() => limits.enter(guess(number))) ?? 'in'

    expect([letIn(1), letIn(2), letIn(3), letIn(4)]).toEqual(['in', 'in', 'in', 'too-many-failures'])
    expect(refusalOf(() => limits.enter({ ...guess(5), from: 'b' })) ?? 'in').toBe('in')
    limits.noteFailure(guess(1))
    limits.leave(guess(1))
    expect(letIn(6)).toBe('too-many-failures')
    limits.noteSuccess(guess(2))
    limits.leave(guess(2))
    expect(letIn(7)).toBe('in')
  })
})

test('an address that speaks for many is nobody, and is not held back', () => {
  const trial = new Trial()
  for (let tries = 0; tries < 100; tries += 1) trial.fail({ from: undefined })

  expect(trial.waitFor({ from: undefined })).toBe(0)
  for (let tries = 0; tries < 20; tries += 1) trial.fail({ from: undefined, credential: 'the same' })
  expect(trial.waitFor({ from: undefined, credential: 'the same' })).toBe(30)
})

describe('all together', () => {
  test('are refused for a moment only, after 200 failures at once', () => {
    const trial = new Trial()
    for (let tries = 0; tries < 199; tries += 1) trial.fail({ from: `address ${tries}` })
    expect(trial.waitFor({ from: 'yet another' })).toBe(0)
    trial.fail({ from: 'one more' })

    expect(trial.waitFor({ from: 'yet another' })).toBe(1)
    trial.now += 10
    expect(trial.waitFor({ from: 'yet another' })).toBe(0)
  })

  test('are not locked out by who has many addresses: 100 a second are let through', () => {
    const trial = new Trial()
    let tried = 0
    let refused = 0
    for (let ms = 0; ms < 10_000; ms += 1) {
      trial.now += 1
      // A thousand a second, each from an address of its own.
      if (trial.waitFor({ from: `address ${ms}` }) === 0) {
        tried += 1
        trial.fail({ from: `address ${ms}` })
      } else refused += 1
    }

    expect(tried).toBeWithin(1_100, 1_301)
    expect(refused).toBe(10_000 - tried)
  })
})

/** Nothing more is taken from the network `x`, nor `one key` from anywhere. */
function exhaust(trial: Trial): void {
  for (let tries = 0; tries < 20; tries += 1) trial.fail({ from: 'y', credential: 'one key' })
  for (let tries = 0; tries < 20; tries += 1) trial.fail({ from: 'x' })
}

describe('who floods the limits to be forgotten by them', () => {
  test('cannot do it from one address: what is refused leaves nothing behind', () => {
    const trial = new Trial()
    exhaust(trial)
    let letIn = 0
    for (let tries = 0; tries < 100_000; tries += 1) {
      trial.now += 0.1
      if (trial.waitFor({ from: 'x', credential: `flood ${tries}` }) > 0) continue
      letIn += 1
      trial.fail({ from: 'x', credential: `flood ${tries}` })
    }

    expect(letIn).toBe(0)
    expect(trial.waitFor({ credential: 'one key', from: 'y' })).toBe(20)
  })

  test('nor within the pause from as many addresses as there are', () => {
    const trial = new Trial()
    exhaust(trial)
    for (let tries = 0; tries < 290_000; tries += 1) {
      trial.now += 0.1
      const attempt = { from: `address ${tries}`, credential: `flood ${tries}` }
      if (trial.waitFor(attempt) === 0) trial.fail(attempt)
    }
    trial.now += 20

    expect(trial.waitFor({ from: 'x', credential: 'new' })).toBe(1)
    expect(trial.waitFor({ from: 'y', credential: 'one key' })).toBe(1)
  })
})

describe('a clock that is set', () => {
  test('forward ends the pause', () => {
    const trial = new Trial()
    trial.guessUntilRefused()
    trial.now += 365 * 24 * 3_600_000

    expect(trial.waitFor({})).toBe(0)
  })

  test('back does not make a pause of a day', () => {
    const trial = new Trial()
    trial.guessUntilRefused()
    trial.now -= 24 * 3_600_000

    expect(trial.waitFor({})).toBe(0)
    trial.fail({})
    expect(trial.waitFor({})).toBe(30)
  })
})
