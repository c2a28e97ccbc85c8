// Failure limits: attempts at the same time, attempts that cannot be checked, and secrets that cannot be guessed.
import { describe, expect, test } from 'bun:test'
import type { RegistryRefusal } from '../../../src/oci/errors.ts'
import { Trial } from '../../support/identity/limits-trial.ts'

const settle = () => new Promise((resolve) => setTimeout(resolve, 0))

describe('credentials that come together', () => {
  /** Guesses that are judged as the test says. */
  function open(trial: Trial) {
    const judging = new Map<number, (verdict: 'good' | undefined) => void>()
    const guess = (number: number, from = 'a') => {
      const work = () => new Promise<'good' | undefined>((resolve) => judging.set(number, resolve))
      return trial.run({ credential: `ann ${number}`, target: 'ann', from }, work).catch(() => 'refused' as const)
    }
    return { judging, guess }
  }

  test('wait no longer than until one of them is good', async () => {
    const { judging, guess } = open(new Trial({ burst: 2 }))
    const all = Promise.all([1, 2, 3].map((number) => guess(number)))
    await settle()
    judging.get(1)?.('good')
    await settle()
    expect([...judging.keys()]).toEqual([1, 2, 3])
    for (const number of [2, 3]) judging.get(number)?.('good')

    expect(await all).toEqual(['good', 'good', 'good'])
  })

  test('of one network do not use up the places in which those of another network wait', async () => {
    const trial = new Trial({ burst: 1 })
    const decisions: (() => void)[] = []
    const attempt = (from: string, number: number, verdict: 'good' | undefined) => {
      const work = () => new Promise<typeof verdict>((resolve) => decisions.push(() => resolve(verdict)))
      const refused = ({ refusal }: RegistryRefusal) => refusal
      return trial.run({ credential: `${from} ${number}`, from }, work).catch(refused)
    }
    const flood = Array.from({ length: 1_002 }, (_, number) => attempt('a', number, undefined))
    expect(await flood.at(-1)).toBe('too-many-failures')
    const others = [1, 2].map((number) => attempt('b', number, 'good'))
    while (decisions.length > 0) {
      for (const decide of decisions.splice(0)) decide()
      await settle()
    }

    expect(await Promise.all(others)).toEqual(['good', 'good'])
    expect(new Set(await Promise.all(flood))).toEqual(new Set([undefined, 'too-many-failures']))
  })
})

test('a secret that cannot be guessed is limited by network, and not by the total of all attempts', async () => {
  const trial = new Trial()
  for (let tries = 0; tries < 400; tries += 1) await trial.fail({ from: `address ${tries}`, isUnguessable: true })
  expect(await trial.waitFor({ credential: 'password', from: 'b' })).toBe(0)
  for (let tries = 0; tries < 400; tries += 1) await trial.fail({ from: `network ${tries}` })

  expect(await trial.waitFor({ credential: 'password', from: 'b' })).toBe(1)
  expect(await trial.waitFor({ credential: 'key', from: 'b', isUnguessable: true })).toBe(0)
  expect(await trial.guessUntilRefused({ from: 'b', isUnguessable: true })).toBe(20)
})
