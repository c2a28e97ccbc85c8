import { describe, expect, test } from 'bun:test'
import { KeyUseRecorder } from '../../../src/identity/api-keys.ts'
import { errorOf } from '../../support/basics/outcomes.ts'

/** Remembers what it was told, call by call; may fail. */
class Notes {
  readonly calls: (readonly number[])[] = []
  fault: Error | undefined

  async recordUses(ids: readonly number[]): Promise<void> {
    this.calls.push(ids)
    if (this.fault !== undefined) throw this.fault
  }
}

function openUses() {
  const notes = new Notes()
  return { notes, uses: new KeyUseRecorder(notes) }
}

describe('the uses of keys', () => {
  test('are written when it is time, all at once and each key once', async () => {
    const { notes, uses } = openUses()
    for (const id of [1, 2, 1, 3, 1]) uses.add(id)
    expect(notes.calls).toEqual([])
    await uses.flush()

    expect(notes.calls).toEqual([[1, 2, 3]])
  })

  test('are written once, and cost nothing when there were none', async () => {
    const { notes, uses } = openUses()
    uses.add(1)
    await uses.flush()
    await uses.flush()

    expect(notes.calls.length).toBe(1)
  })

  test('that come while others are written are written next', async () => {
    const { notes, uses } = openUses()
    uses.add(1)
    const first = uses.flush()
    uses.add(2)
    await first
    await uses.flush()

    expect(notes.calls).toEqual([[1], [2]])
  })

  test('that could not be written cause an error for the caller, and are not tried again', async () => {
    const { notes, uses } = openUses()
    uses.add(1)
    notes.fault = new Error('the disk is full')
    expect(await errorOf(uses.flush())).toBe(notes.fault)
    notes.fault = undefined
    uses.add(2)
    await uses.flush()

    expect(notes.calls).toEqual([[1], [2]])
  })

  test('take no more memory than ten thousand keys', async () => {
    const { notes, uses } = openUses()
    for (let id = 0; id < 20_000; id += 1) uses.add(id)
    await uses.flush()

    expect(notes.calls[0]?.length).toBe(10_000)
  })
})
