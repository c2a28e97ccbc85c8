import { beforeEach, describe, expect, test } from 'bun:test'
import { ages, down, key, Memory, policy, principal, settle } from '../../support/identity/remembering.ts'

let memory = new Memory()

beforeEach(() => {
  memory = new Memory()
})

describe('a question in the background', () => {
  test('is sent when a credential is used late in its time, and no caller waits for it', async () => {
    await memory.subjectOf()
    memory.now += ages.tiredMs
    const answerNow = memory.service.holdAnswers()
    memory.service.answer = principal('second')

    expect([memory.identity.findCached(key)?.subject, await memory.subjectOf()]).toEqual(['first', 'first'])
    expect(memory.service.asked).toBe(2)
    answerNow()
    await settle()
    expect([await memory.subjectOf(), memory.service.asked]).toEqual(['second', 2])
  })

  test('gives the credential all of its time again', async () => {
    await memory.subjectOf()
    memory.now += ages.tiredMs
    await memory.subjectOf()
    await settle()
    memory.now += ages.warmMs

    expect([await memory.subjectOf(), memory.service.asked]).toEqual(['first', 2])
  })

  test('is asked once, however many use the credential meanwhile', async () => {
    await memory.subjectOf()
    memory.now += ages.tiredMs
    const answerNow = memory.service.holdAnswers()
    for (let use = 0; use < 1_000; use += 1) memory.identity.findCached(key)
    await settle()
    expect(memory.service.asked).toBe(2)
    answerNow()
    await settle()

    expect([memory.identity.findCached(key)?.subject, memory.service.asked]).toEqual(['first', 2])
  })

  test('that fails changes nothing, and is asked again at the next use', async () => {
    await memory.subjectOf()
    memory.now += ages.tiredMs
    memory.service.answer = down
    for (let use = 2; use <= 4; use += 1) {
      expect(memory.identity.findCached(key)).toEqual(principal('first'))
      await settle()
      expect(memory.service.asked).toBe(use)
    }
  })

  test('that is answered with no ends the credential at once', async () => {
    await memory.subjectOf()
    memory.now += ages.tiredMs
    memory.service.answer = undefined
    expect(await memory.subjectOf()).toBe('first')
    await settle()

    expect([memory.identity.findCached(key), await memory.subjectOf(), memory.service.asked]).toEqual([
      undefined,
      undefined,
      2,
    ])
  })

  test('is not asked before it is time', async () => {
    await memory.subjectOf()
    memory.now += policy.refreshAfterMs * 0.9
    await memory.subjectOf()
    await settle()

    expect(memory.service.asked).toBe(1)
  })
})
