// Limits of failed attempts to authenticate. Over HTTP: test/api/failure-limits.test.ts.
import { describe, expect, test } from 'bun:test'
import type { RegistryRefusal } from '../../../src/oci/errors.ts'
import { Trial, usual } from './limits-trial.ts'

async function failTimes(trial: Trial, times: number, tried: (number: number) => Parameters<Trial['fail']>[0]) {
  for (let number = 0; number < times; number += 1) await trial.fail(tried(number))
}

describe('an address that tries many credentials', () => {
  test.each([
    usual,
    { ...usual, pauseMs: 1_000 },
    { perMinute: 1, burst: 1, pauseMs: 1_000 },
    { perMinute: 600, burst: 3, pauseMs: 1_000 },
  ])('has no more than its failures a minute in the long run, with %j', async (settings) => {
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

  test.each([
    ['has its whole burst again, and no more, after a quiet day', 24 * 3_600_000, 20],
    // A pause of a day would follow if the clock counted.
    ['may try again if the clock is set back by a day', -24 * 3_600_000, 1],
  ])('%s', async (_, passedMs, tries) => {
    const trial = new Trial()
    expect(await trial.guessUntilRefused()).toBe(20)
    trial.now += passedMs

    expect(await trial.guessUntilRefused()).toBe(tries)
    expect(await trial.waitFor({})).toBe(30)
  })
})

test('a bad credential is not counted together with others of the same beginning', async () => {
  const trial = new Trial()
  const long = 'x'.repeat(5_000)
  await failTimes(trial, 20, () => ({ credential: `${long}1` }))

  expect(await trial.waitFor({ credential: `${long}1` })).toBe(30)
  expect(await trial.waitFor({ credential: `${long}2` })).toBe(0)
})

test('a credential that was valid is not limited for an hour, or until it fails', async () => {
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

describe('all addresses together', () => {
  test('are not locked out by an attacker with many addresses: 100 attempts a second are allowed', async () => {
    const trial = new Trial()
    let tried = 0
    // A thousand a second, each from an address of its own.
    for (let ms = 0; ms < 10_000; ms += 1) {
      trial.now += 1
      if (await trial.fail({ from: `address ${ms}` })) tried += 1
    }

    expect(tried).toBeWithin(1_100, 1_301)
  })

  test('do not limit a secret that cannot be guessed, and are not limited by its failures', async () => {
    const trial = new Trial()
    await failTimes(trial, 400, (number) => ({ from: `address ${number}`, isUnguessable: true }))
    expect(await trial.waitFor({ credential: 'password', from: 'b' })).toBe(0)
    await failTimes(trial, 400, (number) => ({ from: `network ${number}` }))

    expect(await trial.waitFor({ credential: 'password', from: 'b' })).toBe(1)
    expect(await trial.waitFor({ credential: 'key', from: 'b', isUnguessable: true })).toBe(0)
    expect(await trial.guessUntilRefused({ from: 'b', isUnguessable: true })).toBe(20)
  })
})

describe('an attacker cannot push an address out of the memory of the limits', () => {
  const pausedMs = 30_000
  test.each([
    ['from one address, because refused attempts are not remembered', 25_000, () => 'x', 0],
    // The limit of all addresses lets a hundred a second fail.
    ['within the pause from as many addresses as there are', 29_000, (tries: number) => `address ${tries}`, 3_100],
  ])('%s', async (_, triesMax, from, failuresMax) => {
    const trial = new Trial()
    await failTimes(trial, 20, () => ({ from: 'y', credential: 'one key' }))
    await failTimes(trial, 20, () => ({ from: 'x' }))
    let failures = 0
    for (let tries = 0; tries < triesMax; tries += 1) {
      trial.now += (pausedMs - 1_000) / triesMax
      if (await trial.fail({ from: from(tries), credential: `flood ${tries}` })) failures += 1
    }
    trial.now += 20

    expect(failures).toBeWithin(0, failuresMax + 1)
    expect(await trial.waitFor({ from: 'x', credential: 'new' })).toBe(1)
    expect(await trial.waitFor({ from: 'y', credential: 'one key' })).toBe(1)
  })
})

describe('attempts at the same time', () => {
  const settle = () => new Promise((resolve) => setTimeout(resolve, 0))

  /** Attempts that are decided when the test says so. */
  function open(trial: Trial) {
    const decisions = new Map<string, (verdict: 'good' | undefined) => void>()
    const attempt = (from: string, number: number) => {
      const credential = `${from} ${number}`
      const work = () => new Promise<'good' | undefined>((resolve) => decisions.set(credential, resolve))
      return trial.run({ credential, target: from, from }, work).catch(({ refusal }: RegistryRefusal) => refusal)
    }
    return { decisions, attempt }
  }

  test('wait no longer than until one of them is good', async () => {
    const { decisions, attempt } = open(new Trial({ burst: 2 }))
    const all = Promise.all([1, 2, 3].map((number) => attempt('a', number)))
    await settle()
    expect(decisions.size).toBe(2)
    decisions.get('a 1')?.('good')
    await settle()
    expect(decisions.size).toBe(3)
    for (const decide of decisions.values()) decide('good')

    expect(await all).toEqual(['good', 'good', 'good'])
  })

  test('from one network do not use up the places in which those of another network wait', async () => {
    const { decisions, attempt } = open(new Trial({ burst: 1 }))
    const flood = Array.from({ length: 1_002 }, (_, number) => attempt('a', number))
    expect(await flood.at(-1)).toBe('too-many-failures')
    const others = [1, 2].map((number) => attempt('b', number))
    while (decisions.size > 0) {
      for (const [credential, decide] of decisions) {
        decisions.delete(credential)
        decide(credential.startsWith('b') ? 'good' : undefined)
      }
      await settle()
    }

    expect(await Promise.all(others)).toEqual(['good', 'good'])
    expect(new Set(await Promise.all(flood))).toEqual(new Set([undefined, 'too-many-failures']))
  })
})
