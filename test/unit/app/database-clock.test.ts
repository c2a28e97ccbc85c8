// The time that a server takes from the database: which readings count, and how wrong each can be.
import { describe, expect, test } from 'bun:test'
import { systemClock } from '../../../src/adapters/clock-system/system-clock.ts'
import { DatabaseClock } from '../../../src/app/database-clock.ts'

const hourMs = 3_600_000

/** A machine and a database whose clocks differ. The test says how long the request and the answer take. */
function setUp() {
  const world = { at: 5_000, machineOffMs: 1_700_000_000_000, storeOffMs: 1_700_000_000_000, toMs: 0, backMs: 0 }
  const machine = { ...systemClock, now: () => world.at + world.machineOffMs, steadyNow: () => world.at }
  const metadata = {
    async now() {
      world.at += world.toMs
      const told = world.at + world.storeOffMs
      world.at += world.backMs
      return told
    },
  }
  const wrongMs = (clock: DatabaseClock) => clock.now() - (world.at + world.storeOffMs)
  return { world, wrongMs, start: () => DatabaseClock.start(machine, metadata) }
}

describe('the clock of the database', () => {
  test.each([hourMs, -hourMs])(
    'has the time of the database, whatever the time of the machine: %d ms',
    async (offMs) => {
      const { world, start, wrongMs } = setUp()
      world.machineOffMs += offMs

      const clock = await start()
      world.at += 10_000

      expect(wrongMs(clock)).toBe(0)
    },
  )

  test('is right again after the next reading, if the clock of the machine was set', async () => {
    const { world, start, wrongMs } = setUp()
    const clock = await start()
    world.machineOffMs -= 30_000
    expect(wrongMs(clock)).toBe(-30_000)

    await clock.synchronize()

    expect(wrongMs(clock)).toBe(0)
  })

  test('is wrong by at most half of the time that a reading takes', async () => {
    const { world, start, wrongMs } = setUp()
    Object.assign(world, { toMs: 900, backMs: 100 })

    const clock = await start()

    expect(Math.abs(wrongMs(clock))).toBe(400)
  })

  test('ignores a reading that took too long', async () => {
    const { world, start, wrongMs } = setUp()
    const clock = await start()
    Object.assign(world, { toMs: 10_000 })

    await clock.synchronize()

    expect(wrongMs(clock)).toBe(0)
  })

  test('accepts the first reading, however long it took, and corrects it with the next', async () => {
    const { world, start, wrongMs } = setUp()
    world.machineOffMs += hourMs
    Object.assign(world, { toMs: 10_000 })
    const clock = await start()
    expect(Math.abs(wrongMs(clock))).toBe(5_000)
    Object.assign(world, { toMs: 0 })

    await clock.synchronize()

    expect(wrongMs(clock)).toBe(0)
  })

  test.each([30_000, -30_000])(
    'is right after a reading during which the clock of the machine was set by %d ms',
    async (setByMs) => {
      const { world, start, wrongMs } = setUp()
      const clock = await start()
      world.storeOffMs += 7_000
      const reading = clock.synchronize()
      // The request was sent; the answer is handled after this line.
      world.machineOffMs += setByMs
      await reading

      expect(wrongMs(clock)).toBe(0)
    },
  )

  test('measures durations by the machine, whatever its clock or the database says', async () => {
    const { world, start } = setUp()
    const clock = await start()
    const before = clock.steadyNow()
    world.machineOffMs += hourMs
    world.storeOffMs += hourMs
    await clock.synchronize()
    world.at += 250

    expect(clock.steadyNow() - before).toBe(250)
  })
})
