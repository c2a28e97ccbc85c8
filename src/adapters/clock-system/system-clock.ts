import type { Clock } from '../../ports/clock.ts'

export const systemClock: Clock = {
  now: () => Date.now(),
  steadyNow: () => performance.now(),
  freshId: () => Bun.randomUUIDv7(),
}
