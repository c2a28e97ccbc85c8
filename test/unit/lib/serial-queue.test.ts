import { describe, expect, test } from 'bun:test'
import { SerialQueue } from '../../../src/lib/serial-queue.ts'
import { errorOf } from '../../support/basics/outcomes.ts'

describe('a serial queue', () => {
  test('runs one task after the other, in the order in which they came', async () => {
    const queue = new SerialQueue()
    const seen: string[] = []
    const task = (name: string, turns: number) => async () => {
      seen.push(`${name} begins`)
      for (let turn = 0; turn < turns; turn += 1) await Promise.resolve()
      seen.push(`${name} ends`)
      return name
    }

    const results = await Promise.all([
      queue.run(task('slow', 20)),
      queue.run(task('quick', 0)),
      queue.run(task('last', 3)),
    ])

    expect(results).toEqual(['slow', 'quick', 'last'])
    expect(seen).toEqual(['slow begins', 'slow ends', 'quick begins', 'quick ends', 'last begins', 'last ends'])
  })

  test('goes on after a task that failed, and tells only its own caller', async () => {
    const queue = new SerialQueue()
    const fault = new Error('broken')

    const [failed, next] = await Promise.all([
      errorOf(queue.run(() => Promise.reject(fault))),
      queue.run(async () => 'done'),
    ])

    expect({ failed, next }).toEqual({ failed: fault, next: 'done' })
  })
})
