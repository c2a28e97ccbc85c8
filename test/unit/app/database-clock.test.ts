// The time that a server takes from the database: which readings count, and how wrong each can be.
import { describe, expect, test } from 'bun:test'
import { systemClock } from '../../../src/adapters/clock-system/system-clock.ts'
import { DatabaseClock } from '../../../src/app/database-clock.ts'

const hourMs = 3_600_000

/** A machine and a database whose clocks differ, and how long the request and the answer take. */
class World {
  at = 5_000
  machineOffMs = 1_700_000_000_000
  storeOffMs = 1_700_000_000_000
  toMs = 0
  backMs = 0

  readonly #machine = { ...systemClock, now: () => this.at + this.machineOffMs, steadyNow: () => this.at }
  readonly #metadata = {
    now: async () => {
      this.at += this.toMs
      const told = this.at + this.storeOffMs
      this.at += this.backMs
      return told
    },
  }

  start(changed: Partial<World> = {}): Promise<DatabaseClock> {
    return DatabaseClock.start(Object.assign(this, changed) && this.#machine, this.#metadata)
  }

  wrongMs(clock: DatabaseClock): number {
    return clock.now() - (this.at + this.storeOffMs)
  }
}

describe('the clock of the database', () => {
  test('is wrong by at most half of the time that a reading takes', async () => {
    const world = new World()

    expect(Math.abs(world.wrongMs(await world.start({ toMs: 900, backMs: 100 })))).toBe(400)
  })

  test.each([hourMs, -hourMs])(
    'ignores the clock of the machine (%d ms), accepts the first reading and later only short ones',
    async (offMs) => {
      const world = new World()
      world.machineOffMs += offMs
      const clock = await world.start({ toMs: 10_000 })
      world.at += 10_000
      expect(Math.abs(world.wrongMs(clock))).toBe(5_000)
      for (const toMs of [0, 10_000]) {
        world.toMs = toMs
        await clock.synchronize()
        world.at += 10_000
        expect(world.wrongMs(clock)).toBe(0)
      }
    },
  )

  test.each([30_000, -30_000])(
    'is right after the reading during or before which the machine was set by %d ms',
    async (ms) => {
      const world = new World()
      const clock = await world.start()
      world.machineOffMs += ms
      expect(world.wrongMs(clock)).toBe(ms)
      await clock.synchronize()
      expect(world.wrongMs(clock)).toBe(0)

      world.storeOffMs += 7_000
      const reading = clock.synchronize()
      // The request was sent; the answer is handled after this line.
      world.machineOffMs += ms
      await reading
      expect(world.wrongMs(clock)).toBe(0)
    },
  )

  test('measures durations by the machine, whatever its clock or the database says', async () => {
    const world = new World()
    const clock = await world.start()
    const before = clock.steadyNow()
    world.machineOffMs += hourMs
    world.storeOffMs += hourMs
    await clock.synchronize()
    world.at += 250

    expect(clock.steadyNow() - before).toBe(250)
  })
})
