// Servers and the like that run for as long as the tests of a file, or of a `describe`.
import { afterAll, beforeAll } from 'bun:test'
import type { Need } from './needs.ts'

const hookMs = 60_000

/**
 * Starts something before the tests and stops it after them. Where the need is not met, nothing starts. What this returns
 * can be used in tests and hooks, and not yet while the tests are declared.
 */
export function useRunning<T extends { stop(): Promise<unknown> }>(start: () => Promise<T>, need?: Need): T {
  let running: T | undefined
  beforeAll(async () => {
    if (need === undefined || need.isMet) running = await start()
  }, hookMs)
  afterAll(async () => {
    await running?.stop()
  }, hookMs)
  return new Proxy({} as T, {
    get(_, key) {
      if (running === undefined) throw new Error('it is used before the tests began')
      const own: unknown = Reflect.get(running, key)
      return typeof own === 'function' ? own.bind(running) : own
    },
  })
}
