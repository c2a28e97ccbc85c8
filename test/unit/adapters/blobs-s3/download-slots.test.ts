import { beforeEach, describe, expect, test } from 'bun:test'
import {
  type DownloadSlot,
  type DownloadSlotSettings,
  DownloadSlots,
} from '../../../../src/adapters/blobs-s3/downloads.ts'
import { NoSlot } from '../../../../src/lib/slots.ts'
import { errorOf } from '../../../support/basics/outcomes.ts'
import { until } from '../../../support/clocks/until.ts'

/** A hundred bytes a second, over windows of a second: 1,600 bytes in each, as long as somebody waits. */
const pace = { bytesPerSecondMin: 100, windowMs: 1_000 }
const enough = 1_600

let nowMs = 0
beforeEach(() => {
  nowMs = 0
})

function openPlaces(more: Partial<DownloadSlotSettings> = {}): DownloadSlots {
  return new DownloadSlots({ slotsMax: 2, queueMax: 10, waitMaxMs: 60_000, pace, ...more }, () => nowMs)
}

/** A download that has begun, and writes down whether it was cut. */
interface Begun {
  readonly place: DownloadSlot
  isCut: boolean
}

async function begin(places: DownloadSlots): Promise<Begun> {
  const begun: Begun = { place: await places.take(), isCut: false }
  begun.place.begin(() => {
    begun.isCut = true
  })
  return begun
}

/** The reader takes so many bytes at once, and is busy with them for so long. */
function take({ place }: Begun, bytes: number, ms: number): void {
  place.requested()
  place.delivered(bytes)
  nowMs += ms
}

/** As long as somebody waits, there is a look every sixth of a window. */
const lookMs = 400

async function isStillWaiting(waiting: Promise<unknown>): Promise<boolean> {
  return Promise.race([waiting.then(() => false), Bun.sleep(lookMs).then(() => true)])
}

describe('where all places are taken', () => {
  test('the reader that took least is cut for who waits, if that was too little', async () => {
    const places = openPlaces()
    const [one, other] = [await begin(places), await begin(places)]
    take(one, enough / 2, 0)
    take(other, enough / 4, 1_000)
    await places.take()

    expect([one.isCut, other.isCut]).toEqual([false, true])
  })

  test('one is cut for each that waits, and no more', async () => {
    const places = openPlaces({ slotsMax: 4 })
    const all = [await begin(places), await begin(places), await begin(places), await begin(places)]
    for (const [index, one] of all.entries()) take(one, index, 0)
    nowMs += 1_000
    await Promise.all([places.take(), places.take()])

    expect(all.map(({ isCut }) => isCut)).toEqual([true, true, false, false])
  })

  test('nobody is who took enough', async () => {
    const places = openPlaces({ slotsMax: 1 })
    const one = await begin(places)
    take(one, enough, 1_000)
    const waiting = places.take()

    expect(await isStillWaiting(waiting)).toBe(true)
    expect(one.isCut).toBe(false)
    one.place.release()
    expect(await isStillWaiting(waiting)).toBe(false)
  })

  test.each([
    [enough - 1, true],
    [enough, false],
  ])('who has taken %d bytes in the last window is cut: %p', async (bytes, isCut) => {
    const places = openPlaces({ slotsMax: 1 })
    const one = await begin(places)
    take(one, bytes, 1_000)
    const waiting = places.take()

    expect(one.isCut).toBe(isCut)
    one.place.release()
    await waiting
  })

  test('nobody is whose first window is not over; then it is, at the next look', async () => {
    const places = openPlaces({ slotsMax: 1 })
    const one = await begin(places)
    take(one, 1, 999)
    const waiting = places.take()

    expect(await isStillWaiting(waiting)).toBe(true)
    expect(one.isCut).toBe(false)
    nowMs += 1
    await until('a place is free', () => one.isCut)
    await waiting
  })

  test('nobody is whose download has not begun', async () => {
    const places = openPlaces({ slotsMax: 1 })
    const place = await places.take()
    place.delivered(1)
    nowMs += 10_000
    const waiting = places.take()

    expect(await isStillWaiting(waiting)).toBe(true)
    place.release()
    await waiting
  })

  test('the time in which the store is waited for is not the reader’s', async () => {
    const places = openPlaces({ slotsMax: 1 })
    const one = await begin(places)
    take(one, 1, 999)
    one.place.requested()
    nowMs += 60_000
    const waiting = places.take()

    expect(await isStillWaiting(waiting)).toBe(true)
    one.place.delivered(1)
    nowMs += 1
    await until('a place is free', () => one.isCut)
    await waiting
  })

  test('who took little once, and much since, is not cut', async () => {
    const places = openPlaces({ slotsMax: 1 })
    const one = await begin(places)
    take(one, 1, 1_000)
    take(one, enough, 1)
    const waiting = places.take()

    expect(await isStillWaiting(waiting)).toBe(true)
    one.place.release()
    await waiting
  })

  test('who took much once, and nothing for long, is', async () => {
    const places = openPlaces({ slotsMax: 1 })
    const one = await begin(places)
    take(one, 100 * enough, 2_000)
    await places.take()

    expect(one.isCut).toBe(true)
  })

  test('nobody is cut where no pace is asked for', async () => {
    const places = openPlaces({ slotsMax: 1, pace: undefined })
    const one = await begin(places)
    take(one, 0, 1_000_000)
    const waiting = places.take()

    expect(await isStillWaiting(waiting)).toBe(true)
    one.place.release()
    await waiting
  })

  test('so many wait and no more, each only so long, and those who gave up get nothing', async () => {
    const places = openPlaces({ slotsMax: 1, queueMax: 1, waitMaxMs: 10, pace: undefined })
    const place = await places.take()
    const late = errorOf(places.take())
    expect(await errorOf(places.take())).toBeInstanceOf(NoSlot)
    expect(await late).toBeInstanceOf(NoSlot)
    place.release()
    place.release()

    await places.take()
    expect(await errorOf(places.take())).toBeInstanceOf(NoSlot)
  })

  test('who came first goes first', async () => {
    const places = openPlaces({ slotsMax: 1, pace: undefined })
    const first = await places.take()
    const order: number[] = []
    const waiting = [1, 2, 3].map(async (number) => {
      const place = await places.take()
      order.push(number)
      place.release()
    })
    first.release()
    await Promise.all(waiting)

    expect(order).toEqual([1, 2, 3])
  })
})

test('as long as there are places, nobody is cut, however slow', async () => {
  const places = openPlaces()
  const [one, other] = [await begin(places), await begin(places)]
  take(one, 0, 1_000_000)
  take(other, 0, 1_000_000)
  await Bun.sleep(lookMs)

  expect([one.isCut, other.isCut]).toEqual([false, false])
})
