import { beforeEach, describe, expect, test } from 'bun:test'
import { errorOf } from '../../support/basics/outcomes.ts'
import { down, key, Memory, numbered, principal, settle } from '../../support/identity/remembering.ts'

let memory = new Memory()

beforeEach(() => {
  memory = new Memory()
})

describe('when users or keys have changed', () => {
  test('everyone is asked about again, the good and the bad', async () => {
    const other = numbered(1)
    await memory.subjectOf()
    memory.service.answer = undefined
    await memory.subjectOf(other)
    memory.service.answer = principal('second')
    memory.identity.clear()

    expect(memory.identity.findCached(key)).toBeUndefined()
    expect([await memory.subjectOf(), await memory.subjectOf(other), memory.service.asked]).toEqual([
      'second',
      'second',
      4,
    ])
  })

  test('an answer on its way is not remembered, since it may be of before', async () => {
    const answerNow = memory.service.holdAnswers()
    const early = memory.subjectOf()
    await settle()
    memory.identity.clear()
    answerNow()
    expect(await early).toBe('first')
    memory.service.answer = undefined

    expect([memory.identity.findCached(key), await memory.subjectOf(), memory.service.asked]).toEqual([
      undefined,
      undefined,
      2,
    ])
  })

  test('a request after it does not share a query from before', async () => {
    const answerEarly = memory.service.holdAnswers()
    const early = memory.subjectOf()
    await settle()
    memory.identity.clear()
    memory.service.answer = undefined
    const answerLate = memory.service.holdAnswers()
    const late = memory.subjectOf()
    await settle()
    expect(memory.service.asked).toBe(2)
    answerLate()
    expect(await late).toBeUndefined()
    answerEarly()

    expect(await early).toBe('first')
    expect([memory.identity.findCached(key), await memory.subjectOf()]).toEqual([undefined, undefined])
  })

  test('an early question that ends late does not make the later one be asked twice', async () => {
    const answerEarly = memory.service.holdAnswers()
    const early = memory.subjectOf()
    await settle()
    memory.identity.clear()
    const answerLate = memory.service.holdAnswers()
    const late = memory.subjectOf()
    await settle()
    answerEarly()
    await early
    memory.service.holdAnswers()
    void memory.subjectOf()
    await settle()
    expect(memory.service.asked).toBe(2)
    answerLate()

    expect(await late).toBe('first')
  })

  test('no earlier credential is accepted in an outage', async () => {
    await memory.subjectOf()
    memory.identity.clear()
    memory.service.answer = down

    expect(await errorOf(memory.identity.authenticate(key))).toBe(down)
  })
})
