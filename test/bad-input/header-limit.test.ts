// In a process of its own: Bun has one such limit for a whole process.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type BerthProcess, startBerth } from '../support/server/berth-process.ts'

let berth: BerthProcess | undefined

beforeAll(async () => {
  berth = await startBerth({ settings: { BERTH_LIMITS__HEADER_BYTES: '32KiB' } })
})

afterAll(async () => {
  await berth?.stop()
})

test.each([
  [20, 200],
  [30, 200],
  [33, 431],
  [100, 431],
])('with a limit of 32 KiB, headers of %p KiB are answered %p', async (size, status) => {
  const answer = await fetch(`${berth?.url}/healthz`, { headers: { 'x-padding': 'a'.repeat(size * 1024) } })
  expect(answer.status).toBe(status)
})
