import { beforeEach, describe, expect, test } from 'bun:test'
import { errorOf } from '../../support/basics/outcomes.ts'
import { ages, down, key, Memory, numbered, policy, principal } from '../../support/identity/remembering.ts'

let memory = new Memory()

beforeEach(() => {
  memory = new Memory()
})

describe('a good credential', () => {
  test('is removed from the cache when more recent ones fill it', async () => {
    memory = new Memory({ goodEntriesMax: 3 })
    for (let index = 0; index < 4; index += 1) await memory.subjectOf(numbered(index))

    const cached = [0, 1, 2, 3].map((index) => memory.identity.findCached(numbered(index)) !== undefined)
    expect(cached).toEqual([false, true, true, true])
  })

  test('is asked about once while it is remembered', async () => {
    await memory.subjectOf()
    memory.service.answer = principal('second')
    memory.now += ages.warmMs

    expect([await memory.subjectOf(), memory.identity.findCached(key)?.subject, memory.service.asked]).toEqual([
      'first',
      'first',
      1,
    ])
  })

  test('is asked about again, and waited for, when its time is over', async () => {
    await memory.subjectOf()
    memory.service.answer = principal('second')
    memory.now += policy.goodMs

    expect(memory.identity.findCached(key)).toBeUndefined()
    expect([await memory.subjectOf(), memory.service.asked]).toEqual(['second', 2])
  })

  test('is never remembered beyond its own end', async () => {
    memory.service.answer = principal('short', memory.now + 500)
    await memory.subjectOf()
    memory.service.answer = undefined

    memory.now += 499
    expect(await memory.subjectOf()).toBe('short')
    memory.now += 1
    expect(memory.identity.findCached(key)).toBeUndefined()
    expect(await memory.subjectOf()).toBeUndefined()
  })

  test('that ended already is asked about each time', async () => {
    memory.service.answer = principal('late', memory.now)
    await memory.subjectOf()
    await memory.subjectOf()

    expect(memory.service.asked).toBe(2)
  })

  test('is told from one of the other kind and from every other secret', async () => {
    await memory.subjectOf()
    for (const other of [
      { kind: 'bearer', secret: 'k' },
      { kind: 'api-key', secret: 'K' },
      { kind: 'api-key', secret: 'k ' },
      { kind: 'api-key', secret: '' },
    ] as const) {
      memory.service.answer = principal('other')
      expect(memory.identity.findCached(other)).toBeUndefined()
      expect(await memory.subjectOf(other)).toBe('other')
    }
    expect(await memory.subjectOf()).toBe('first')
  })

  test('is remembered for up to a tenth less than it may be, each for its own time, and never for longer', async () => {
    const all = Array.from({ length: 300 }, (_, index) => numbered(index))
    for (const one of all) await memory.identity.authenticate(one)
    const still = () => all.filter((one) => memory.identity.findCached(one) !== undefined).length
    const start = memory.now

    memory.now = start + policy.goodMs * 0.9
    expect(still()).toBe(300)
    memory.now = start + policy.goodMs * 0.95
    expect(still()).toBeWithin(1, 300)
    memory.now = start + policy.goodMs
    expect(still()).toBe(0)
  })

  test('is asked about every time where nothing is to be remembered', async () => {
    memory = new Memory({ goodMs: 0 })
    await memory.subjectOf()
    await memory.subjectOf()

    expect([memory.service.asked, memory.identity.findCached(key)]).toEqual([2, undefined])
  })

  test('is forgotten once the service says no', async () => {
    await memory.subjectOf()
    memory.now += policy.goodMs
    memory.service.answer = undefined
    expect(await memory.subjectOf()).toBeUndefined()
    memory.service.answer = down
    memory.now += policy.badMs

    expect(await errorOf(memory.identity.authenticate(key))).toBe(down)
  })
})

describe('a bad credential', () => {
  beforeEach(() => {
    memory.service.answer = undefined
  })

  test('is not asked about again for its time, to the millisecond', async () => {
    await memory.subjectOf()
    memory.service.answer = principal('new')
    memory.now += policy.badMs - 1
    expect([await memory.subjectOf(), memory.service.asked]).toEqual([undefined, 1])
    memory.now += 1

    expect([await memory.subjectOf(), memory.service.asked]).toEqual(['new', 2])
  })

  test('is asked about each time where bad ones are not to be remembered', async () => {
    memory = new Memory({ badMs: 0 })
    memory.service.answer = undefined
    await memory.subjectOf()
    memory.service.answer = principal('new')

    expect(await memory.subjectOf()).toBe('new')
  })

  test('that turns good is good from then on', async () => {
    await memory.subjectOf()
    memory.now += policy.badMs
    memory.service.answer = principal('new')
    await memory.subjectOf()
    memory.now += policy.goodMs - policy.badMs
    memory.service.answer = down

    expect(await memory.subjectOf()).toBe('new')
  })

  test('does not displace good credentials from the cache, however many come', async () => {
    memory.service.answer = principal('first')
    await memory.subjectOf()
    memory.service.answer = undefined
    for (let index = 0; index < 20_000; index += 1) await memory.identity.authenticate(numbered(index))

    expect(memory.identity.findCached(key)?.subject).toBe('first')
  })

  test('is forgotten when two thousand others came after it', async () => {
    await memory.subjectOf()
    for (let index = 0; index < 1_999; index += 1) await memory.identity.authenticate(numbered(index))
    await memory.subjectOf()
    expect(memory.service.asked).toBe(2_000)
    for (let index = 2_000; index < 4_000; index += 1) await memory.identity.authenticate(numbered(index))
    await memory.subjectOf()

    expect(memory.service.asked).toBe(4_001)
  })
})

describe('many at once', () => {
  test('with one credential ask one question, and all get its answer', async () => {
    const all = await Promise.all(Array.from({ length: 1_000 }, () => memory.subjectOf()))

    expect([memory.service.asked, new Set(all)]).toEqual([1, new Set(['first'])])
  })

  test('with a bad one as well', async () => {
    memory.service.answer = undefined
    const all = await Promise.all(Array.from({ length: 1_000 }, () => memory.subjectOf()))

    expect([memory.service.asked, new Set(all)]).toEqual([1, new Set([undefined])])
  })

  test('all fail together, and the next request asks again', async () => {
    memory.service.answer = down
    const all = await Promise.all(Array.from({ length: 1_000 }, () => errorOf(memory.identity.authenticate(key))))
    expect([memory.service.asked, new Set(all)]).toEqual([1, new Set([down])])
    memory.service.answer = principal('back')

    expect(await memory.subjectOf()).toBe('back')
  })

  test('with as many credentials ask as many questions', async () => {
    await Promise.all(Array.from({ length: 100 }, (_, index) => memory.subjectOf(numbered(index))))

    expect(memory.service.asked).toBe(100)
  })
})

test('the memory is bounded: the credential that was used longest ago is asked about again', async () => {
  await memory.subjectOf()
  for (let index = 0; index < 9_999; index += 1) await memory.identity.authenticate(numbered(index))
  await memory.subjectOf()
  expect(memory.service.asked).toBe(10_000)
  for (let index = 9_999; index < 19_999; index += 1) await memory.identity.authenticate(numbered(index))
  await memory.subjectOf()

  expect(memory.service.asked).toBe(20_001)
})
