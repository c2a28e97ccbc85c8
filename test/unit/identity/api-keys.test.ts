// The names of keys, and the record of their uses. Creation: test/api/identity/api-keys.test.ts.
import { describe, expect, test } from 'bun:test'
import { KeyUseRecorder } from '../../../src/identity/api-keys.ts'
import { parseKeyName } from '../../../src/identity/names.ts'
import { errorOf, refusalOf } from '../../support/basics/outcomes.ts'

describe('the name of a key', () => {
  test.each(['a', 'A1', 'ci.example_2-x@host+1', '0', 'first', 'x'.repeat(64)])('may be %p', (name) => {
    expect(String(parseKeyName(name))).toBe(name)
  })

  // `preset` is the name of the key of the configuration, which is removed with the configuration.
  test.each(['', ' ', '-a', '.a', 'a b', 'a/b', 'a\n', 'ä', 'x'.repeat(65), '(preset)', 'a%2e', 'preset'])(
    'may not be %j',
    (name) => expect(refusalOf(() => parseKeyName(name))).toBe('identity-invalid'),
  )
})

describe('the uses of keys', () => {
  function openRecorder(fault?: Error) {
    const calls: (readonly number[])[] = []
    const recordUses = async (ids: readonly number[]) => {
      calls.push(ids)
      if (fault !== undefined && calls.length === 1) throw fault
    }
    const uses = new KeyUseRecorder({ recordUses })
    return { calls, uses, add: (...ids: number[]) => ids.forEach((id) => void uses.add(id)) }
  }

  test('are written together when they are flushed, each key once, and not again', async () => {
    const { calls, uses, add } = openRecorder()
    add(1, 2, 1, 3, 1)
    expect(calls).toEqual([])
    await uses.flush()
    await uses.flush()

    expect(calls).toEqual([[1, 2, 3]])
  })

  test('that come while others are written are written next', async () => {
    const { calls, uses, add } = openRecorder()
    add(1)
    const first = uses.flush()
    add(2)
    await first
    await uses.flush()

    expect(calls).toEqual([[1], [2]])
  })

  test('that could not be written are an error, and are not written again', async () => {
    const fault = new Error('the disk is full')
    const { calls, uses, add } = openRecorder(fault)
    add(1)
    expect(await errorOf(uses.flush())).toBe(fault)
    add(2)
    await uses.flush()

    expect(calls).toEqual([[1], [2]])
  })

  test('take no more memory than those of ten thousand keys', async () => {
    const { calls, uses, add } = openRecorder()
    add(...Array.from({ length: 20_000 }, (_, id) => id))
    await uses.flush()

    expect(calls[0]?.length).toBe(10_000)
  })
})
