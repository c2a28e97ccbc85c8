import { beforeEach, describe, expect, test } from 'bun:test'
import type { Principal } from '../../../src/ports/identity.ts'
import { errorOf } from '../../support/basics/outcomes.ts'
import { ages, down, key, Memory, policy, principal } from '../../support/identity/remembering.ts'

let memory = new Memory()

beforeEach(() => {
  memory = new Memory()
})

describe('while the identity service does not answer', () => {
  const unconfirmed = { ...principal('first'), isUnconfirmed: true }

  test('an unknown caller gets the error, and nothing is remembered', async () => {
    memory.service.answer = down
    expect(await errorOf(memory.identity.authenticate(key))).toBe(down)
    memory.service.answer = principal('back')

    expect(await memory.identity.authenticate(key)).toEqual(principal('back'))
  })

  test('a remembered caller is admitted as before', async () => {
    await memory.subjectOf()
    memory.service.answer = down
    memory.now += ages.warmMs

    expect(await memory.identity.authenticate(key)).toEqual(principal('first'))
  })

  test('a caller who was confirmed recently is known, but unconfirmed, until the outage has lasted too long', async () => {
    await memory.subjectOf()
    memory.service.answer = down
    memory.now += ages.staleMs
    expect(memory.identity.findCached(key)).toBeUndefined()
    expect(await memory.identity.authenticate(key)).toEqual(unconfirmed as Principal)
    memory.now += policy.outageMs - ages.staleMs - 1
    expect(await memory.identity.authenticate(key)).toEqual(unconfirmed as Principal)
    memory.now += 1

    expect(await errorOf(memory.identity.authenticate(key))).toBe(down)
  })

  test('it is asked each time all the same, and its first answer counts', async () => {
    await memory.subjectOf()
    memory.now += ages.staleMs
    memory.service.answer = down
    await memory.subjectOf()
    await memory.subjectOf()
    expect(memory.service.asked).toBe(3)
    memory.service.answer = principal('first')
    expect(await memory.identity.authenticate(key)).toEqual(principal('first'))
    memory.service.answer = down
    memory.now += ages.staleMs
    expect((await memory.identity.authenticate(key))?.isUnconfirmed).toBe(true)
    memory.service.answer = undefined

    expect(await memory.subjectOf()).toBeUndefined()
  })

  test('no credential is accepted beyond its end', async () => {
    memory.service.answer = principal('first', memory.now + ages.staleMs + 1)
    await memory.subjectOf()
    memory.service.answer = down
    memory.now += ages.staleMs
    expect((await memory.identity.authenticate(key))?.isUnconfirmed).toBe(true)
    memory.now += 1

    expect(await errorOf(memory.identity.authenticate(key))).toBe(down)
  })

  test('a thousand requests with one recent credential cause one request and are all accepted', async () => {
    await memory.subjectOf()
    memory.service.answer = down
    memory.now += ages.staleMs
    const all = await Promise.all(Array.from({ length: 1_000 }, () => memory.identity.authenticate(key)))

    expect(memory.service.asked).toBe(2)
    for (const one of all) expect(one).toEqual(unconfirmed as Principal)
  })

  test('no credential is accepted in an outage where the setting forbids it', async () => {
    memory = new Memory({ outageMs: 0 })
    await memory.subjectOf()
    memory.service.answer = down
    memory.now += ages.staleMs

    expect(await errorOf(memory.identity.authenticate(key))).toBe(down)
  })

  test('a bug does not count as an outage', async () => {
    await memory.subjectOf()
    memory.service.answer = new TypeError('a mistake')
    memory.now += ages.staleMs

    expect(await errorOf(memory.identity.authenticate(key))).toBe(memory.service.answer)
  })

  test('what is remembered is not marked itself: once confirmed again, there is no trace of it', async () => {
    await memory.subjectOf()
    memory.service.answer = down
    memory.now += ages.staleMs
    await memory.subjectOf()
    memory.service.answer = principal('first')
    await memory.subjectOf()

    expect(memory.identity.findCached(key)).toEqual(principal('first'))
  })
})
