// The cache of credentials: a generated walk beside a naive model, and what the walk does not reach: requests that run at
// the same time, and the bounds of the cache.
import { beforeEach, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { CachePolicy } from '../../../src/identity/cached-identity.ts'
import type { Credential, Principal } from '../../../src/ports/identity.ts'
import { seed } from '../../support/basics/fuzzing.ts'
import { errorOf } from '../../support/basics/outcomes.ts'
import { down, key, Memory, numbered, policy, principal, settle } from '../../support/identity/remembering.ts'

/** Times of a walk are multiples of 5 s. So no age falls into the tenth by which the times of two credentials differ. */
const walkPolicy: CachePolicy = { goodMs: 50_000, refreshAfterMs: 35_000, badMs: 10_000, outageMs: 100_000 }
const shortLifeMs = 20_000
const bug = new TypeError('a bug')
const answers = ['one', 'another', 'short', 'refused', 'down', 'bug'] as const
const lookalikes: readonly Credential[] = [
  key,
  { kind: 'bearer', secret: 'k' },
  { kind: 'api-key', secret: 'K' },
  { kind: 'login', userName: 'k', secret: 'k ' },
]

interface Step {
  readonly waitMs: number
  readonly act: 'authenticate' | 'findCached' | 'clear'
  readonly credential: Credential
  readonly answer: (typeof answers)[number]
}

const walks = fc.array(
  fc.record<Step>({
    waitMs: fc.constantFrom(0, 5_000, 10_000, 35_000, 50_000),
    act: fc.oneof(
      { weight: 6, arbitrary: fc.constant('authenticate' as const) },
      { weight: 3, arbitrary: fc.constant('findCached' as const) },
      { weight: 1, arbitrary: fc.constant('clear' as const) },
    ),
    credential: fc.constantFrom(...lookalikes),
    answer: fc.constantFrom(...answers),
  }),
  { minLength: 50, maxLength: 50 },
)

/** What a step gives, and how many requests the service gets. */
type Outcome = readonly [given: string | undefined, requests: number]

class NaiveCache {
  readonly #policy: CachePolicy
  readonly #good = new Map<Credential, { readonly subject: string; readonly since: number; readonly end: number }>()
  readonly #badUntil = new Map<Credential, number>()

  constructor(given: CachePolicy) {
    this.#policy = given
  }

  take({ act, credential, answer }: Step, now: number): Outcome {
    if (act === 'clear') {
      this.#good.clear()
      this.#badUntil.clear()
      return [undefined, 0]
    }
    const known = this.#good.get(credential)
    if (known !== undefined && now < Math.min(known.since + this.#policy.goodMs, known.end)) {
      const isRefreshed = now >= known.since + this.#policy.refreshAfterMs
      if (isRefreshed) this.#store(credential, answer, now)
      return [known.subject, isRefreshed ? 1 : 0]
    }
    if (act === 'findCached' || (this.#badUntil.get(credential) ?? 0) > now) return [undefined, 0]
    this.#store(credential, answer, now)
    const isUsable = known !== undefined && now < Math.min(known.since + this.#policy.outageMs, known.end)
    if (answer === 'down' && isUsable) return [`${known.subject}, unconfirmed`, 1]
    return [answer === 'refused' ? undefined : answer, 1]
  }

  #store(credential: Credential, answer: Step['answer'], now: number): void {
    if (answer === 'down' || answer === 'bug') return
    this.#good.delete(credential)
    if (answer === 'refused') this.#badUntil.set(credential, now + this.#policy.badMs)
    else {
      const end = answer === 'short' ? now + shortLifeMs : Infinity
      this.#good.set(credential, { subject: answer, since: now, end })
    }
  }
}

function answerOf(answer: Step['answer'], now: number): Principal | undefined | Error {
  if (answer === 'refused') return undefined
  if (answer === 'down') return down
  return answer === 'bug' ? bug : principal(answer, answer === 'short' ? now + shortLifeMs : undefined)
}

async function take(memory: Memory, { act, credential }: Step): Promise<string | undefined> {
  if (act === 'clear') memory.identity.clear()
  if (act === 'clear') return undefined
  try {
    const found =
      act === 'findCached' ? memory.identity.findCached(credential) : await memory.identity.authenticate(credential)
    return found && `${found.subject}${found.isUnconfirmed ? ', unconfirmed' : ''}`
  } catch (error) {
    return error === down ? 'down' : error === bug ? 'bug' : String(error)
  }
}

function walk(ofCache: CachePolicy, ofModel: CachePolicy): Promise<void> {
  const property = fc.asyncProperty(walks, async (steps) => {
    const [memory, model] = [new Memory({ ...ofCache, goodEntriesMax: 10 }), new NaiveCache(ofModel)]
    for (const step of steps) {
      memory.now += step.waitMs
      memory.service.asked = 0
      memory.service.answer = answerOf(step.answer, memory.now)
      const given = await take(memory, step)
      // A check in the background ends.
      await settle()
      expect([given, memory.service.asked]).toEqual([...model.take(step, memory.now)])
    }
  })
  return fc.assert(property, { seed, numRuns: 120 })
}

describe('a walk of checks, refusals, outages and clearings agrees with the model', () => {
  test.each([{}, { goodMs: 0 }, { badMs: 0 }, { outageMs: 0 }])('with the policy %j', async (more) => {
    const given = { ...walkPolicy, ...more }
    await walk(given, given)
  })

  test.each(['goodMs', 'refreshAfterMs', 'badMs', 'outageMs'] as const)(
    'and not if %s is twice as long (control)',
    async (name) => {
      const other = { ...walkPolicy, [name]: walkPolicy[name] * 2 }
      expect(await errorOf(walk(other, walkPolicy))).toBeDefined()
    },
  )
})

let memory: Memory
beforeEach(() => {
  memory = new Memory()
})

test('each credential is cached for up to a tenth less than the policy allows, and never longer', async () => {
  const all = Array.from({ length: 300 }, (_, index) => numbered(index))
  for (const one of all) await memory.identity.authenticate(one)
  const countCached = () => all.filter((one) => memory.identity.findCached(one) !== undefined).length
  const start = memory.now

  memory.now = start + policy.goodMs * 0.9
  expect(countCached()).toBe(300)
  memory.now = start + policy.goodMs * 0.95
  expect(countCached()).toBeWithin(1, 300)
  memory.now = start + policy.goodMs
  expect(countCached()).toBe(0)
})

describe('a thousand requests at once', () => {
  const request = (credential = key) => memory.identity.authenticate(credential).catch((error: unknown) => error)
  const requests = () => Promise.all(Array.from({ length: 1_000 }, () => request()))

  test.each([principal('first'), undefined, down])('with one credential share one check: %j', async (answer) => {
    memory.service.answer = answer

    expect([new Set(await requests()), memory.service.asked]).toEqual([new Set([answer]), 1])
  })

  test('late in the time of their credential do not wait for the one check in the background', async () => {
    await request()
    memory.now += policy.goodMs * 0.9 - 1
    const answerNow = memory.service.holdAnswers()
    memory.service.answer = principal('second')

    expect([new Set(await requests()), memory.service.asked]).toEqual([new Set([principal('first')]), 2])
    answerNow()
    await settle()
    expect([await memory.subjectOf(), memory.service.asked]).toEqual(['second', 2])
  })
})

test.each(['earlier', 'later'])(
  'a check from before a clearing is neither cached nor shared: the %s check ends first',
  async (first) => {
    const [answerEarly, early] = [memory.service.holdAnswers(), memory.subjectOf()]
    await settle()
    memory.identity.clear()
    memory.service.answer = principal('second')
    const [answerLate, late] = [memory.service.holdAnswers(), memory.subjectOf()]
    await settle()
    if (first === 'later') {
      answerLate()
      expect(await late).toBe('second')
    }
    answerEarly()
    expect(await early).toBe('first')
    expect(memory.identity.findCached(key)?.subject).toBe(first === 'later' ? 'second' : undefined)
    // Shares the check that still runs.
    void memory.subjectOf()
    await settle()
    answerLate()

    expect(await late).toBe('second')
    expect([memory.identity.findCached(key)?.subject, memory.service.asked]).toEqual(['second', 2])
  },
)

describe('the cache is bounded', () => {
  const bringMany = async (from: number, to: number) => {
    for (let index = from; index < to; index += 1) await memory.identity.authenticate(numbered(index))
  }

  test.each([
    ['ten thousand valid credentials', 'somebody', 10_000],
    ['two thousand bad credentials', undefined, 2_000],
  ] as const)('to %s: the one that was used longest ago is checked again', async (_, subject, max) => {
    memory.service.answer = subject && principal(subject)
    await memory.subjectOf()
    await bringMany(0, max - 1)
    await memory.subjectOf()
    expect(memory.service.asked).toBe(max)
    await bringMany(max, 2 * max)
    await memory.subjectOf()

    expect(memory.service.asked).toBe(2 * max + 1)
  })

  test('and bad credentials do not displace valid ones', async () => {
    memory = new Memory({ goodEntriesMax: 1 })
    await memory.subjectOf()
    memory.service.answer = undefined
    await bringMany(0, 3_000)

    expect(memory.identity.findCached(key)?.subject).toBe('first')
  })
})
