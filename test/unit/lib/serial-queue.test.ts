import { expect, test } from 'bun:test'
import { SerialQueue } from '../../../src/lib/serial-queue.ts'

test('a serial queue runs one task after the other in their order, also after a task that failed', async () => {
  const queue = new SerialQueue()
  const seen: string[] = []
  const task = (name: string, turns: number) => async () => {
    seen.push(`${name} begins`)
    for (let turn = 0; turn < turns; turn += 1) await Promise.resolve()
    seen.push(`${name} ends`)
    if (name === 'broken') throw name
    return name
  }
  const run = (name: string, turns: number) => queue.run(task(name, turns)).catch((fault) => `${fault} is told`)

  const results = await Promise.all([run('slow', 20), run('broken', 5), run('quick', 0)])
  expect(results).toEqual(['slow', 'broken is told', 'quick'])
  expect(seen).toEqual(['slow begins', 'slow ends', 'broken begins', 'broken ends', 'quick begins', 'quick ends'])
})
