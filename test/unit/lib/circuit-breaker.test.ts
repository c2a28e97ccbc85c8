import { beforeEach, describe, expect, test } from 'bun:test'
import { CircuitBreaker, CircuitOpen } from '../../../src/lib/circuit-breaker.ts'
import { errorOf } from '../../support/basics/outcomes.ts'

const fault = new Error('down')
let now = 0
let asked = 0
let breaker = new CircuitBreaker(() => now)

beforeEach(() => {
  now = 1_000_000
  asked = 0
  breaker = new CircuitBreaker(() => now)
})

function fail(origin?: string): Promise<unknown> {
  return errorOf(
    breaker.run(async () => {
      asked += 1
      throw fault
    }, origin),
  )
}

function succeed(): Promise<string> {
  return breaker.run(async () => {
    asked += 1
    return 'fine'
  })
}

async function open(): Promise<void> {
  for (let failures = 0; failures < 5; failures += 1) expect(await fail()).toBe(fault)
}

describe('a circuit breaker', () => {
  test('opens after the fifth failure in a row, and then nothing goes through', async () => {
    await open()

    expect(await errorOf(succeed())).toBeInstanceOf(CircuitOpen)
    expect(asked).toBe(5)
  })

  test('stays closed as long as something succeeds between four failures', async () => {
    for (let round = 0; round < 5; round += 1) {
      for (let failures = 0; failures < 4; failures += 1) await fail()
      expect(await succeed()).toBe('fine')
    }

    expect(asked).toBe(25)
  })

  test('is not opened by one origin, however often it fails, and is by five', async () => {
    for (let failures = 0; failures < 20; failures += 1) expect(await fail('one')).toBe(fault)
    for (const origin of ['two', 'three', 'four', 'five']) expect(await fail(origin)).toBe(fault)

    expect(await fail('six')).toBeInstanceOf(CircuitOpen)
  })

  test('gives the trial to an origin that has not failed, and to the others two seconds later', async () => {
    for (const origin of ['one', 'two', 'three', 'four', 'five']) await fail(origin)
    now += 2_000
    expect(await fail('one')).toBeInstanceOf(CircuitOpen)
    expect(await fail('six')).toBe(fault)
    now += 4_000
    expect(await fail('one')).toBe(fault)
  })

  test('lets one call through on trial after two seconds, to the millisecond', async () => {
    await open()
    now += 1_999
    expect(await errorOf(succeed())).toBeInstanceOf(CircuitOpen)
    now += 1

    expect(await succeed()).toBe('fine')
    expect(asked).toBe(6)
  })

  test('lets nothing else through while the trial runs', async () => {
    await open()
    now += 2_000
    const answer = Promise.withResolvers<string>()
    const trial = breaker.run(() => answer.promise)

    expect(await errorOf(succeed())).toBeInstanceOf(CircuitOpen)
    now += 60_000
    expect(await errorOf(succeed())).toBeInstanceOf(CircuitOpen)
    answer.resolve('back')

    expect(await trial).toBe('back')
    expect(await succeed()).toBe('fine')
  })

  test('is as new after a trial that succeeds: it takes five failures again', async () => {
    await open()
    now += 2_000
    await succeed()
    for (let failures = 0; failures < 4; failures += 1) expect(await fail()).toBe(fault)

    expect(await succeed()).toBe('fine')
  })

  test('stays open for two more seconds after a trial that fails', async () => {
    await open()
    now += 2_000
    expect(await fail()).toBe(fault)
    expect(await errorOf(succeed())).toBeInstanceOf(CircuitOpen)
    now += 1_999
    expect(await errorOf(succeed())).toBeInstanceOf(CircuitOpen)
    now += 1

    expect(await succeed()).toBe('fine')
  })

  test('ignores calls that began before it opened', async () => {
    const early = [Promise.withResolvers<string>(), Promise.withResolvers<string>()] as const
    const [late, later] = [breaker.run(() => early[0].promise), errorOf(breaker.run(() => early[1].promise))]
    await open()
    early[0].resolve('fine')
    expect(await late).toBe('fine')
    expect(await errorOf(succeed())).toBeInstanceOf(CircuitOpen)

    now += 1_999
    early[1].reject(fault)
    expect(await later).toBe(fault)
    now += 1
    expect(await succeed()).toBe('fine')
  })

  test('is not kept open longer by calls that fail late', async () => {
    const late = Promise.withResolvers<string>()
    const failing = errorOf(breaker.run(() => late.promise))
    await open()
    now += 1_999
    late.reject(fault)
    await failing
    now += 1

    expect(await succeed()).toBe('fine')
  })

  test('counts work that throws before it returns a promise', async () => {
    for (let failures = 0; failures < 5; failures += 1) {
      await errorOf(
        breaker.run(() => {
          throw fault
        }),
      )
    }

    expect(await errorOf(succeed())).toBeInstanceOf(CircuitOpen)
  })
})
