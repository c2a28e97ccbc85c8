// What a server takes for the time of the metadata store: which of its looks count, and by how much each can be wrong.
import { describe, expect, test } from 'bun:test'
import { systemClock } from '../../../src/adapters/clock-system/system-clock.ts'
import { SharedClock } from '../../../src/app/shared-clock.ts'

const hourMs = 3_600_000

/** A machine and a store whose clocks are apart; the ways there and back take as long as the test says. */
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
  const wrongMs = (clock: SharedClock) => clock.now() - (world.at + world.storeOffMs)
  return { world, wrongMs, start: () => SharedClock.start(machine, metadata) }
}

describe('the shared clock', () => {
  test.each([hourMs, -hourMs])('is that of the store, however wrong the machine is: %d ms', async (offMs) => {
    const { world, start, wrongMs } = setUp()
    world.machineOffMs += offMs

    const clock = await start()
    world.at += 10_000

    expect(wrongMs(clock)).toBe(0)
  })

  test('is right again after a look, when the machine was set', async () => {
    const { world, start, wrongMs } = setUp()
    const clock = await start()
    world.machineOffMs -= 30_000
    expect(wrongMs(clock)).toBe(-30_000)

    await clock.look()

    expect(wrongMs(clock)).toBe(0)
  })

  test('is wrong by no more than half of what a look takes', async () => {
    const { world, start, wrongMs } = setUp()
    Object.assign(world, { toMs: 900, backMs: 100 })

    const clock = await start()

    expect(Math.abs(wrongMs(clock))).toBe(400)
  })

  test('does not believe a look that took long', async () => {
    const { world, start, wrongMs } = setUp()
    const clock = await start()
    Object.assign(world, { toMs: 10_000 })

    await clock.look()

    expect(wrongMs(clock)).toBe(0)
  })

  test('believes the first one, however long it took, and mends it with the next', async () => {
    const { world, start, wrongMs } = setUp()
    world.machineOffMs += hourMs
    Object.assign(world, { toMs: 10_000 })
    const clock = await start()
    expect(Math.abs(wrongMs(clock))).toBe(5_000)
    Object.assign(world, { toMs: 0 })

    await clock.look()

    expect(wrongMs(clock)).toBe(0)
  })

  test.each([30_000, -30_000])(
    'is right after a look in whose middle the machine was set by %d ms, and that look counts',
    async (setByMs) => {
      const { world, start, wrongMs } = setUp()
      const clock = await start()
      world.storeOffMs += 7_000
      const looking = clock.look()
      // The question is on its way: the answer is taken in behind this line.
      world.machineOffMs += setByMs
      await looking

      expect(wrongMs(clock)).toBe(0)
    },
  )

  test('measures distances by the machine, and none of this moves them', async () => {
    const { world, start } = setUp()
    const clock = await start()
    const before = clock.steadyNow()
    world.machineOffMs += hourMs
    world.storeOffMs += hourMs
    await clock.look()
    world.at += 250

    expect(clock.steadyNow() - before).toBe(250)
  })
})
