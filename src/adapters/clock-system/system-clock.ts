import type { Clock } from '../../ports/clock.ts'

export const systemClock: Clock = {
  now: () => Date.now(),
  steadyNow: () => performance.now(),
  freshId: () => Bun.randomUUIDv7(),
  every(intervalMs, act) {
    const timer = setInterval(act, intervalMs)
    return { [Symbol.dispose]: () => clearInterval(timer) }
  },
  sleep: (ms) => Bun.sleep(ms),
}
