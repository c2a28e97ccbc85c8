// A timer of the runtime holds 2^31 - 1 ms; a longer time is taken for 1 ms, and the work behind the timer never rests.
import { afterEach, expect, test } from 'bun:test'
import { settingsTable } from '../../src/app/settings.ts'
import { startTestServer } from '../support/server/test-server.ts'

const timerMsMax = 2 ** 31 - 1
const original = { setTimeout, setInterval, timeout: AbortSignal.timeout, sleep: Bun.sleep }

afterEach(() => {
  Object.assign(globalThis, { setTimeout: original.setTimeout, setInterval: original.setInterval })
  Object.assign(AbortSignal, { timeout: original.timeout })
  Object.assign(Bun, { sleep: original.sleep })
})

/** Every delay that a timer is given from now on. A long sleep ends at once. */
function recordDelays(): number[] {
  const delays: number[] = []
  const noted = (ms = 0): number => {
    delays.push(ms)
    return ms
  }
  Object.assign(globalThis, {
    setTimeout: (act: () => void, ms?: number) => original.setTimeout(act, noted(ms)),
    setInterval: (act: () => void, ms?: number) => original.setInterval(act, noted(ms)),
  })
  Object.assign(AbortSignal, { timeout: (ms: number) => original.timeout.call(AbortSignal, noted(ms)) })
  Object.assign(Bun, { sleep: (ms: number) => original.sleep(Math.min(noted(ms), 20)) })
  return delays
}

/** As the reference shows it: `a duration such as 30s, ..., and at most 24h`. */
const largest = Object.values(settingsTable)
  .filter(({ kind }) => kind.allowed.startsWith('a duration'))
  .map(({ name, variable, kind }) => ({ name, variable, value: /at most (\d+\w+)$/.exec(kind.allowed)?.[1] ?? 'none' }))

test('the largest value of every duration setting overflows no timer', async () => {
  expect(largest.length).toBeGreaterThan(20)
  expect(largest.filter(({ value }) => value === 'none')).toEqual([])
  const delays = recordDelays()
  const server = await startTestServer(Object.fromEntries(largest.map(({ variable, value }) => [variable, value])))
  const content = new Uint8Array(400_000)
  const digest = `sha256:${new Bun.CryptoHasher('sha256').update(content).digest('hex')}`
  const pushed = await server.fetch(`/v2/a/blobs/uploads/?digest=${digest}`, { method: 'POST', body: content })
  const pulled = await server.fetch(`/v2/a/blobs/${digest}`)
  expect([pushed.status, pulled.status, (await pulled.bytes()).length]).toEqual([201, 200, content.length])
  await server.stop()

  expect(delays.filter((ms) => ms > 3_600_000).length).toBeGreaterThan(0)
  expect(delays.filter((ms) => !(ms <= timerMsMax))).toEqual([])
})
