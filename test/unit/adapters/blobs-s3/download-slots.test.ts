import { beforeEach, describe, expect, test } from 'bun:test'
import {
  type DownloadSlot,
  type DownloadSlotSettings,
  DownloadSlots,
} from '../../../../src/adapters/blobs-s3/downloads.ts'
import { NoSlot } from '../../../../src/lib/slots.ts'
import { errorOf } from '../../../support/basics/outcomes.ts'
import { until } from '../../../support/clocks/until.ts'

/** While others wait, a reader must read 1,600 bytes in each window of a second. */
const pace = { bytesPerSecondMin: 100, windowMs: 1_000 }
const enough = 1_600

let nowMs = 0
beforeEach(() => {
  nowMs = 0
})

function openSlots(more: Partial<DownloadSlotSettings> = {}): DownloadSlots {
  return new DownloadSlots({ slotsMax: 2, queueMax: 10, waitMaxMs: 60_000, pace, ...more }, () => nowMs)
}

/** A download that has begun, and records whether it was cut. */
interface BegunDownload {
  readonly slot: DownloadSlot
  isCut: boolean
}

async function begin(slots: DownloadSlots): Promise<BegunDownload> {
  const begun: BegunDownload = { slot: await slots.take(), isCut: false }
  begun.slot.begin(() => {
    begun.isCut = true
  })
  return begun
}

/** The reader gets so many bytes at once, and is busy with them for so long. */
function read(slot: DownloadSlot, bytes: number, ms: number): void {
  slot.requested()
  slot.delivered(bytes)
  nowMs += ms
}

/** While a download waits, the readers are checked six times in a window. */
const checkMs = 400

async function isStillWaiting(waiting: Promise<unknown>): Promise<boolean> {
  return Promise.race([waiting.then(() => false), Bun.sleep(checkMs).then(() => true)])
}

describe('while all slots are taken', () => {
  test('one reader is cut for each download that waits, the slowest first', async () => {
    const slots = openSlots({ slotsMax: 4 })
    const all = [await begin(slots), await begin(slots), await begin(slots), await begin(slots)]
    for (const [index, bytes] of [300, 200, 100, enough].entries()) read(all[index]?.slot as DownloadSlot, bytes, 0)
    nowMs += 1_000
    await Promise.all([slots.take(), slots.take()])

    expect(all.map(({ isCut }) => isCut)).toEqual([false, true, true, false])
  })

  /** What one reader does before another download waits, and whether it is cut then. */
  const readers: Readonly<Record<string, readonly [isCut: boolean, act: (slot: DownloadSlot) => void]>> = {
    'one byte too few in the last window': [true, (slot) => read(slot, enough - 1, 1_000)],
    'enough in the last window': [false, (slot) => read(slot, enough, 1_000)],
    'too few in a first window that is not over': [false, (slot) => read(slot, 1, 999)],
    'too few, and then enough': [
      false,
      (slot) => {
        read(slot, 1, 1_000)
        read(slot, enough, 1)
      },
    ],
    'many, and then nothing for a window': [true, (slot) => read(slot, 100 * enough, 2_000)],
    'too few while S3 was slow': [
      false,
      (slot) => {
        read(slot, 1, 999)
        slot.requested()
        nowMs += 60_000
      },
    ],
  }

  test.each(Object.entries(readers))('a reader that has read %s', async (_, [isCut, act]) => {
    const slots = openSlots({ slotsMax: 1 })
    const one = await begin(slots)
    act(one.slot)
    const waiting = slots.take()

    expect([await isStillWaiting(waiting), one.isCut]).toEqual([!isCut, isCut])
    one.slot.release()
    await waiting
  })

  test('a reader is cut as soon as its first window is over', async () => {
    const slots = openSlots({ slotsMax: 1 })
    const one = await begin(slots)
    read(one.slot, 1, 999)
    one.slot.requested()
    nowMs += 60_000
    const waiting = slots.take()
    one.slot.delivered(1)
    expect(one.isCut).toBe(false)
    nowMs += 1
    await until('a slot is free', () => one.isCut)
    await waiting
  })

  test('no reader is cut whose download has not begun, nor if there is no pace or a free slot', async () => {
    const [notBegun, paceless] = [openSlots({ slotsMax: 1 }), openSlots({ slotsMax: 1, pace: undefined })]
    const beforeFree = await begin(openSlots({ slotsMax: 2 }))
    read(beforeFree.slot, 0, 1_000_000)
    const slot = await notBegun.take()
    slot.delivered(1)
    const one = await begin(paceless)
    read(one.slot, 0, 1_000_000)
    const waiting = [notBegun.take(), paceless.take()]

    expect(await Promise.all(waiting.map(isStillWaiting))).toEqual([true, true])
    expect(beforeFree.isCut).toBe(false)
    slot.release()
    one.slot.release()
    await Promise.all(waiting)
  })

  test('the queue and the wait are limited, and a slot is released once', async () => {
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
})
