// A writer's turn at an upload while somebody sets the clock of its machine: the turn is kept in time, and nobody who
// is alive is taken for dead.
import { describe, expect, test } from 'bun:test'
import { systemClock } from '../../../src/adapters/clock-system/system-clock.ts'
import { RegistryRefusal } from '../../../src/oci/errors.ts'
import type { Clock } from '../../../src/ports/clock.ts'
import { RunningUploads } from '../../../src/registry/running-uploads.ts'
import { turnMs } from '../../../src/registry/upload-writing.ts'
import { appendToUpload, startUpload } from '../../../src/registry/uploads.ts'
import { bodyOf, openWorld, scopeOf } from '../../support/deed-world.ts'
import { before } from '../../support/gates.ts'
import { useTemporaryFolders } from '../../support/temporary-folders.ts'

const temporaryFolder = useTemporaryFolders('turns')

/** How the time really goes by, and what the machine's clock is off. */
interface Time {
  at: number
  offMs: number
}

function clockOf(time: Time): Clock {
  return { ...systemClock, now: () => time.at + time.offMs, steadyNow: () => time.at }
}

/** As it must not be: distances by a clock that somebody sets. */
function settableClockOf(time: Time): Clock {
  const clock = clockOf(time)
  return { ...clock, steadyNow: clock.now }
}

/** A world of that clock with an upload in it, and the moments at which its turn was taken, kept and given back. */
async function openTurns(time: Time, clock: Clock) {
  const world = await openWorld(temporaryFolder())
  const owner = { ...(await scopeOf(world)), subject: 'alice' }
  const { id } = await startUpload(world, owner, 'free')
  const moments: number[] = []
  const note = async () => void moments.push(time.at)
  const metadata = ['claim', 'keepTurn', 'advance'].reduce(
    (inner, method) => before(inner, 'uploads', method, note),
    world.metadata,
  )
  return { needs: { ...world, metadata, clock, running: new RunningUploads(clock) }, owner, id, moments }
}

/** The longest that the turn had to last. */
function longestOf(moments: readonly number[]): number {
  return Math.max(...moments.slice(1).map((moment, index) => moment - (moments[index] ?? moment)))
}

/** A PATCH of three minutes, a byte every two seconds, and what it came to. The clock is set after half a minute. */
async function patchFor(time: Time, clock: Clock, setByMs: number) {
  const { needs, owner, id, moments } = await openTurns(time, clock)
  async function* bytes(): AsyncGenerator<Uint8Array> {
    for (let count = 0; count < 90; count += 1) {
      if (count === 15) time.offMs += setByMs
      time.at += 2_000
      yield new Uint8Array(1)
    }
  }
  const body = Object.assign(bytes(), { cancel: () => undefined })
  const sizeBytes = await appendToUpload(needs, owner, id, { body, first: 0, lengthBytes: undefined })
  return { sizeBytes, longestMs: longestOf(moments), timesKept: moments.length - 2 }
}

describe("the machine's clock is set in the middle of a PATCH", () => {
  const steps = [-30_000, -3_600_000, 30_000, 3_600_000]

  test.each(steps)('by %d ms: the turn is kept well before its end, and no more often', async (setByMs) => {
    const time: Time = { at: 1_000, offMs: 1_700_000_000_000 }

    const { sizeBytes, longestMs, timesKept } = await patchFor(time, clockOf(time), setByMs)

    expect(sizeBytes).toBe(90)
    expect(longestMs).toBeLessThanOrEqual(turnMs / 2)
    expect(timesKept).toBeGreaterThanOrEqual(12)
    expect(timesKept).toBeLessThanOrEqual(18)
  })

  test('which would leave the turn to others if distances went by it', async () => {
    const time: Time = { at: 1_000, offMs: 1_700_000_000_000 }

    expect((await patchFor(time, settableClockOf(time), -30_000)).longestMs).toBeGreaterThan(turnMs)
  })
})

describe("the machine's clock is set while a writer waits for its next byte", () => {
  /** What a second writer is told, when the first got a byte just now and the clock is set by as much. */
  async function secondWriter(clock: Clock, time: Time, setByMs: number): Promise<string> {
    const { needs, owner, id } = await openTurns(time, clock)
    const next = Promise.withResolvers<void>()
    const waiting = Promise.withResolvers<void>()
    const stopped = Promise.withResolvers<void>()
    async function* bytes(): AsyncGenerator<Uint8Array> {
      yield new Uint8Array(1)
      waiting.resolve()
      await next.promise
    }
    const cancel = (): void => {
      stopped.resolve()
      next.resolve()
    }
    const body = Object.assign(bytes(), { cancel })
    const first = appendToUpload(needs, owner, id, { body, first: 0, lengthBytes: undefined })
    await waiting.promise
    time.at += 500
    time.offMs += setByMs

    const second = appendToUpload(needs, owner, id, bodyOf(new Uint8Array(1))).then(
      (sizeBytes) => `it wrote up to ${sizeBytes}`,
      (error: unknown) => (error instanceof RegistryRefusal ? error.refusal : String(error)),
    )
    const told = await Promise.race([second, stopped.promise.then(() => 'the first one was stopped')])
    next.resolve()
    await Promise.all([first, second])
    return told
  }

  test.each([1_000, 3_600_000, -3_600_000])('by %d ms: another one finds it alive', async (setByMs) => {
    const time: Time = { at: 1_000, offMs: 1_700_000_000_000 }

    expect(await secondWriter(clockOf(time), time, setByMs)).toBe('upload-busy')
  })

  test('which would end it if distances went by it', async () => {
    const time: Time = { at: 1_000, offMs: 1_700_000_000_000 }

    expect(await secondWriter(settableClockOf(time), time, 1_000)).toBe('the first one was stopped')
  })
})
