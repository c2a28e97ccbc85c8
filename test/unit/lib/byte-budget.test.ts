import { describe, expect, test } from 'bun:test'
import { ByteBudget, type HoldTerms, NoRoom } from '../../../src/lib/byte-budget.ts'
import { errorOf } from '../../support/basics/outcomes.ts'
import { until } from '../../support/clocks/until.ts'

const kept: HoldTerms = { askToRelease: () => undefined }

/** Of 100 bytes: 40 for one holder, 10 for small reservations alone, which have at most 5. */
function budgetOf(waitMs = 60_000, holdMs = 60_000, now?: () => number): ByteBudget {
  return new ByteBudget(
    {
      bytesMax: 100,
      bytesPerHolderMax: 40,
      bytesForSmall: 10,
      smallBytes: 5,
      waitMs,
      bytesWaitingMax: 60,
      bytesWaitingPerHolderMax: 30,
      holdMs,
    },
    now,
  )
}

describe('a byte budget', () => {
  test('gives one holder its share, all holders the total, and small reservations the rest', () => {
    const budget = budgetOf()

    expect(budget.tryReserve('a', 40, kept)).toBeDefined()
    expect(budget.tryReserve('a', 1, kept)).toBeUndefined()
    expect(budget.tryReserve('b', 40, kept)).toBeDefined()
    expect(budget.tryReserve('c', 11, kept)).toBeUndefined()
    expect(budget.tryReserve('c', 10, kept)).toBeDefined()
    expect(budget.tryReserve('d', 5, kept)).toBeDefined()
    expect(budget.tryReserve('e', 5, kept)).toBeDefined()
    expect(budget.tryReserve('f', 1, kept)).toBeUndefined()
    expect(budget.reservedBytes).toBe(100)
    expect(budget.force('operator', 5, kept).bytes).toBe(5)
  })

  test('serves those that wait in their order, except small ones and those whose holder has used up its share', async () => {
    const budget = budgetOf()
    const [a, b] = [budget.tryReserve('a', 40, kept), budget.tryReserve('b', 40, kept)]
    const served: string[] = []
    const wait = (name: string, holder: string, bytes: number) =>
      budget.waitForRoom(holder, bytes, kept).then((hold) => {
        served.push(name)
        return hold
      })
    const own = wait('second of b', 'b', 10)
    const first = wait('first', 'c', 30)
    const later = wait('later', 'd', 10)
    expect(budget.tryReserve('e', 10, kept)).toBeUndefined()
    expect(budget.tryReserve('e', 5, kept)).toBeDefined()
    await new Promise(setImmediate)
    expect(served).toEqual([])

    a?.release()
    a?.release()
    await Promise.all([first, later])
    expect(served).toEqual(['first', 'later'])

    b?.release()
    await own
    expect(budget.reservedBytes).toBe(30 + 10 + 10 + 5)
  })

  test('refuses a waiter that waits too long, that would keep too much, or that is gone', async () => {
    const budget = budgetOf(20)
    const hold = budget.tryReserve('a', 40, kept)
    expect(await errorOf(budget.waitForRoom('a', 40, kept))).toEqual(new NoRoom({ reservedBytes: 40, bytesMax: 100 }))

    const patient = budgetOf()
    const full = patient.tryReserve('a', 40, kept)
    let isGone = false
    const gone = errorOf(patient.waitForRoom('a', 20, { ...kept, bytesWhileWaiting: 20, isOver: () => isGone }))
    expect(await errorOf(patient.waitForRoom('a', 20, { ...kept, bytesWhileWaiting: 20 }))).toBeInstanceOf(NoRoom)
    isGone = true
    full?.release()
    expect(await gone).toBeInstanceOf(NoRoom)
    expect(patient.reservedBytes).toBe(0)
    hold?.release()
  })

  test('refuses to wait when all that wait would keep too much, although each keeps little', async () => {
    const budget = budgetOf()
    const full = budget.force('operator', 100, kept)
    const small = { ...kept, bytesWhileWaiting: 25 }
    const waiting = [budget.waitForRoom('a', 20, small), budget.waitForRoom('b', 20, small)]

    expect(await errorOf(budget.waitForRoom('c', 20, small))).toBeInstanceOf(NoRoom)
    full.release()
    expect((await Promise.all(waiting)).map(({ bytes }) => bytes)).toEqual([20, 20])
  })

  test('looks at many holds once for all reservations that fail within 50 ms', () => {
    let now = 0
    let looks = 0
    const budget = budgetOf(60_000, 60_000, () => now)
    const isOver = () => {
      looks += 1
      return false
    }
    for (let count = 0; count < 100; count += 1) budget.force('a', 1, { ...kept, isOver })
    const failTenTimes = () => {
      looks = 0
      for (let count = 0; count < 10; count += 1) expect(budget.tryReserve('a', 10, kept)).toBeUndefined()
      return looks
    }

    now += 50
    expect(failTenTimes()).toBe(100)
    now += 49
    expect(failTenTimes()).toBe(0)
    now += 1
    expect(failTenTimes()).toBe(100)
  })

  test('reclaims finished holds only when it needs memory', () => {
    const budget = budgetOf()
    let isOver = false
    budget.tryReserve('a', 40, { ...kept, isOver: () => isOver })
    expect(budget.tryReserve('a', 40, kept)).toBeUndefined()

    isOver = true
    expect(budget.reservedBytes).toBe(40)
    expect(budget.tryReserve('a', 30, kept)).toBeDefined()
    expect(budget.reservedBytes).toBe(30)
  })

  test('counts nothing twice and forgets nothing, however many holds end without a word', () => {
    const budget = budgetOf()
    for (let time = 0; time < 1_000; time += 1) {
      const hold = budget.force('a', 1, { ...kept, isOver: () => true })
      if (time % 3 === 0) hold.release()
      if (time % 5 === 0) hold.become(2, kept)
      if (time % 5 === 0) hold.release()
    }

    expect(budget.reservedBytes).toBeLessThan(130)
    expect(budget.tryReserve('a', 40, kept)).toBeDefined()
    expect(budget.reservedBytes).toBe(40)
  })

  test('asks the oldest holds to give up while others wait, and no more than are needed', async () => {
    const budget = budgetOf(60_000, 0)
    const asked: string[] = []
    const holdOf = (name: string, holder: string) => {
      const hold = budget.tryReserve(holder, 20, {
        askToRelease: () => {
          asked.push(name)
          hold?.release()
        },
      })
    }
    holdOf('of another', 'b')
    holdOf('oldest', 'a')
    holdOf('younger', 'a')
    expect(asked).toEqual([])

    await budget.waitForRoom('a', 10, kept)

    await until('the oldest is asked', () => asked.length > 0)
    expect(asked).toEqual(['oldest'])
  })

  test('asks a hold to give up only when it is old enough, and asks again only after 5 s', async () => {
    let now = 0
    let asked = 0
    let turns = 0
    const budget = budgetOf(60_000, 1_000, () => now)
    const hold = budget.tryReserve('a', 40, {
      askToRelease: () => {
        asked += 1
      },
    })
    // The budget asks each waiter in each of its turns whether it is over.
    const isOver = () => {
      turns += 1
      return false
    }
    const waiting = budget.waitForRoom('a', 10, { ...kept, isOver })
    const askedAt = async (ms: number) => {
      now = ms
      turns = 0
      await until('two turns are over', () => turns >= 2)
      return asked
    }

    expect([await askedAt(999), await askedAt(1_000), await askedAt(5_999), await askedAt(6_000)]).toEqual([0, 1, 1, 2])
    hold?.release()
    await waiting
  })
})
