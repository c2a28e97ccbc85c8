import { afterEach, beforeEach, expect, jest, test } from 'bun:test'
import { repeatEvery } from '../../../src/lib/intervals.ts'

beforeEach(() => void jest.useFakeTimers())
afterEach(() => void jest.useRealTimers())

const dayMs = 86_400_000

test.each([1, 24, 30, 365])('work that is due every %i days is done once in that time, until it is ended', (days) => {
  let times = 0
  const end = repeatEvery(days * dayMs, () => {
    times += 1
  })
  const after = (ms: number): number => {
    for (let left = ms; left > 0; left -= dayMs) jest.advanceTimersByTime(Math.min(left, dayMs))
    return times
  }

  expect([after(days * dayMs - 1_000), after(2_000), after(days * dayMs)]).toEqual([0, 1, 2])
  end()
  expect(after(2 * days * dayMs)).toBe(2)
})
