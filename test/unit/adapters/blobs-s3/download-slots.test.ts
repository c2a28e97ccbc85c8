import { beforeEach, describe, expect, test } from 'bun:test'
import {
  type DownloadSlot,
  type DownloadSlotSettings,
  DownloadSlots,
} from '../../../../src/adapters/blobs-s3/downloads.ts'
import { NoSlot } from '../../../../src/lib/slots.ts'
import { errorOf } from '../../../support/basics/outcomes.ts'
import { until } from '../../../support/clocks/until.ts'

/** A hundred bytes a second, over windows of a second: 1,600 bytes in each, as long as a download waits. */
const pace = { bytesPerSecondMin: 100, windowMs: 1_000 }
const enough = 1_600

let nowMs = 0
beforeEach(() => {
  nowMs = 0
})

function openSlots(more: Partial<DownloadSlotSettings> = {}): DownloadSlots {
  return new DownloadSlots({ slotsMax: 2, queueMax: 10, waitMaxMs: 60_000, pace, ...more }, () => nowMs)
}

/** A download that has started, and writes down whether it was cut. */
interface StartedDownload {
  readonly slot: DownloadSlot
  isCut: boolean
}

async function begin(slots: DownloadSlots): Promise<StartedDownload> {
  const started: StartedDownload = { slot: await slots.take(), isCut: false }
  started.slot.begin(() => {
    started.isCut = true
  })
  return started
}

/** The reader takes so many bytes at once, and is busy with them for so long. */
function take({ slot }: StartedDownload, bytes: number, ms: number): void {
  slot.requested()
  slot.delivered(bytes)
  nowMs += ms
}

/** As long as a download waits, the readers are checked every sixth of a window. */
const lookMs = 400

async function isStillWaiting(waiting: Promise<unknown>): Promise<boolean> {
  return Promise.race([waiting.then(() => false), Bun.sleep(lookMs).then(() => true)])
}

describe('while all slots are taken', () => {
  test('the slowest reader is cut if it is too slow', async () => {
    const slots = openSlots()
    const [one, other] = [await begin(slots), await begin(slots)]
    take(one, enough / 2, 0)
    take(other, enough / 4, 1_000)
    await slots.take()

    expect([one.isCut, other.isCut]).toEqual([false, true])
  })

  test('one reader is cut for each that waits, and no more', async () => {
    const slots = openSlots({ slotsMax: 4 })
    const all = [await begin(slots), await begin(slots), await begin(slots), await begin(slots)]
    for (const [index, one] of all.entries()) take(one, index, 0)
    nowMs += 1_000
    await Promise.all([slots.take(), slots.take()])

    expect(all.map(({ isCut }) => isCut)).toEqual([true, true, false, false])
  })

  test('no reader is cut that is fast enough', async () => {
    const slots = openSlots({ slotsMax: 1 })
    const one = await begin(slots)
    take(one, enough, 1_000)
    const waiting = slots.take()

    expect(await isStillWaiting(waiting)).toBe(true)
    expect(one.isCut).toBe(false)
    one.slot.release()
    expect(await isStillWaiting(waiting)).toBe(false)
  })

  test.each([
    [enough - 1, true],
    [enough, false],
  ])('a reader that has taken %d bytes in the last window is cut: %p', async (bytes, isCut) => {
    const slots = openSlots({ slotsMax: 1 })
    const one = await begin(slots)
    take(one, bytes, 1_000)
    const waiting = slots.take()

    expect(one.isCut).toBe(isCut)
    one.slot.release()
    await waiting
  })

  test('no reader is cut in its first window; afterwards it is', async () => {
    const slots = openSlots({ slotsMax: 1 })
    const one = await begin(slots)
    take(one, 1, 999)
    const waiting = slots.take()

    expect(await isStillWaiting(waiting)).toBe(true)
    expect(one.isCut).toBe(false)
    nowMs += 1
    await until('a slot is free', () => one.isCut)
    await waiting
  })

  test('no reader is cut whose download has not started', async () => {
    const slots = openSlots({ slotsMax: 1 })
    const slot = await slots.take()
    slot.delivered(1)
    nowMs += 10_000
    const waiting = slots.take()

    expect(await isStillWaiting(waiting)).toBe(true)
    slot.release()
    await waiting
  })

  test('the time in which S3 is slow does not count', async () => {
    const slots = openSlots({ slotsMax: 1 })
    const one = await begin(slots)
    take(one, 1, 999)
    one.slot.requested()
    nowMs += 60_000
    const waiting = slots.take()

    expect(await isStillWaiting(waiting)).toBe(true)
    one.slot.delivered(1)
    nowMs += 1
    await until('a slot is free', () => one.isCut)
    await waiting
  })

  test('a reader that was slow and became fast is not cut', async () => {
    const slots = openSlots({ slotsMax: 1 })
    const one = await begin(slots)
    take(one, 1, 1_000)
    take(one, enough, 1)
    const waiting = slots.take()

    expect(await isStillWaiting(waiting)).toBe(true)
    one.slot.release()
    await waiting
  })

  test('a reader that was fast and became slow is cut', async () => {
    const slots = openSlots({ slotsMax: 1 })
    const one = await begin(slots)
    take(one, 100 * enough, 2_000)
    await slots.take()

    expect(one.isCut).toBe(true)
  })

  test('no reader is cut if no pace is set', async () => {
    const slots = openSlots({ slotsMax: 1, pace: undefined })
    const one = await begin(slots)
    take(one, 0, 1_000_000)
    const waiting = slots.take()

    expect(await isStillWaiting(waiting)).toBe(true)
    one.slot.release()
    await waiting
  })

  test('the queue and the wait are limited, and a reader that gave up gets no slot', async () => {
    const slots = openSlots({ slotsMax: 1, queueMax: 1, waitMaxMs: 10, pace: undefined })
    const slot = await slots.take()
    const late = errorOf(slots.take())
    expect(await errorOf(slots.take())).toBeInstanceOf(NoSlot)
    expect(await late).toBeInstanceOf(NoSlot)
    slot.release()
    slot.release()

    await slots.take()
    expect(await errorOf(slots.take())).toBeInstanceOf(NoSlot)
  })

  test('the reader that came first gets the first slot', async () => {
    const slots = openSlots({ slotsMax: 1, pace: undefined })
    const first = await slots.take()
    const order: number[] = []
    const waiting = [1, 2, 3].map(async (number) => {
      const slot = await slots.take()
      order.push(number)
      slot.release()
    })
    first.release()
    await Promise.all(waiting)

    expect(order).toEqual([1, 2, 3])
  })
})

test('while there are free slots, no reader is cut', async () => {
  const slots = openSlots()
  const [one, other] = [await begin(slots), await begin(slots)]
  take(one, 0, 1_000_000)
  take(other, 0, 1_000_000)
  await Bun.sleep(lookMs)

  expect([one.isCut, other.isCut]).toEqual([false, false])
})
