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

/** So much later, a call of this origin whose work fails or succeeds, and its result. */
type Step = readonly [
  laterMs: number,
  call: 'fail' | 'succeed',
  result: 'down' | 'fine' | 'open',
  origin?: string | undefined,
]

const failures = (count: number, origin?: string): readonly Step[] =>
  Array.from({ length: count }, () => [0, 'fail', 'down', origin] as const)
const open = failures(5)

async function follow(steps: readonly Step[]): Promise<void> {
  for (const [index, [laterMs, call, result, origin]] of steps.entries()) {
    now += laterMs
    const ended = breaker.run(async () => {
      asked += 1
      if (call === 'fail') throw fault
      return 'fine'
    }, origin)
    const found = await ended.catch((error: unknown) => (error instanceof CircuitOpen ? 'open' : 'down'))
    expect([index, found]).toEqual([index, result])
  }
}

const lives: readonly (readonly [words: string, steps: readonly Step[], asked: number])[] = [
  ['opens after the fifth failure in a row, and then no call passes', [...open, [0, 'succeed', 'open']], 5],
  [
    'stays closed as long as a call succeeds between four failures',
    [...failures(4), [0, 'succeed', 'fine'], ...failures(4), [0, 'succeed', 'fine']],
    10,
  ],
  [
    'is not opened by one origin, however often it fails, but by five',
    [
      ...failures(20, 'one'),
      ...['two', 'three', 'four', 'five'].flatMap((origin) => failures(1, origin)),
      [0, 'fail', 'open', 'six'],
    ],
    24,
  ],
  [
    'gives the trial to an origin that has not failed, and to the others two seconds later',
    [
      ...['one', 'two', 'three', 'four', 'five'].flatMap((origin) => failures(1, origin)),
      [2_000, 'fail', 'open', 'one'],
      [0, 'fail', 'down', 'six'],
      [4_000, 'fail', 'down', 'one'],
    ],
    7,
  ],
  [
    'lets one call pass as a trial after exactly two seconds, and starts again if it succeeds',
    [
      ...open,
      [1_999, 'succeed', 'open'],
      [1, 'succeed', 'fine'],
      ...failures(4),
      [0, 'succeed', 'fine'],
      ...open,
      [0, 'succeed', 'open'],
    ],
    16,
  ],
  [
    'stays open for two more seconds after a trial that fails',
    [...open, [2_000, 'fail', 'down'], [0, 'succeed', 'open'], [1_999, 'succeed', 'open'], [1, 'succeed', 'fine']],
    7,
  ],
]

describe('a circuit breaker', () => {
  test.each(lives)('%s', async (_, steps, calls) => {
    await follow(steps)
    expect(asked).toBe(calls)
  })

  test('lets no other call pass while the trial runs', async () => {
    await follow(open)
    now += 2_000
    const answer = Promise.withResolvers<string>()
    const trial = breaker.run(() => answer.promise)

    await follow([
      [0, 'succeed', 'open'],
      [60_000, 'succeed', 'open'],
    ])
    answer.resolve('back')

    expect(await trial).toBe('back')
    await follow([[0, 'succeed', 'fine']])
  })

  test('ignores the results of calls that began before it opened', async () => {
    const early = [Promise.withResolvers<string>(), Promise.withResolvers<string>()] as const
    const [late, later] = [breaker.run(() => early[0].promise), errorOf(breaker.run(() => early[1].promise))]
    await follow([...open, [1_999, 'succeed', 'open']])
    early[1].reject(fault)
    expect(await later).toBe(fault)
    early[0].resolve('fine')
    expect(await late).toBe('fine')
    await follow([
      [0, 'succeed', 'open'],
      [1, 'succeed', 'fine'],
    ])
  })

  test('counts work that throws before it returns a promise', async () => {
    const throwAtOnce = () => {
      throw fault
    }
    for (let count = 0; count < 5; count += 1) await errorOf(breaker.run(throwAtOnce))
    await follow([[0, 'succeed', 'open']])
  })
})
