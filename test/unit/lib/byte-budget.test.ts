import { describe, expect, test } from 'bun:test'
import { ByteBudget, type HoldTerms, NoRoom } from '../../../src/lib/byte-budget.ts'
import { errorOf } from '../../support/outcomes.ts'
import { until } from '../../support/until.ts'

const kept: HoldTerms = { giveUp: () => undefined }

/** Of 100 bytes: 40 for one holder, 10 for small reservations alone, which have at most 5. */
function budgetOf(waitMs = 60_000, holdMs = 60_000): ByteBudget {
  return new ByteBudget({
    bytesMax: 100,
    bytesPerHolderMax: 40,
    bytesForSmall: 10,
    smallBytes: 5,
    waitMs,
    bytesWaitingMax: 60,
    bytesWaitingPerHolderMax: 30,
    holdMs,
  })
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

  test('serves those who wait in their order, and passes over who lacks a share of its own', async () => {
    const budget = budgetOf()
    const [a, b] = [budget.tryReserve('a', 40, kept), budget.tryReserve('b', 40, kept)]
    const served: string[] = []
    const wait = (name: string, holder: string, bytes: number) =>
      budget.reserve(holder, bytes, kept).then((hold) => {
        served.push(name)
        return hold
      })
    const own = wait('second of b', 'b', 10)
    const first = wait('first', 'c', 30)
    const later = wait('later', 'd', 10)
    expect(budget.tryReserve('e', 10, kept)).toBeUndefined()

    a?.release()
    a?.release()
    await Promise.all([first, later])
    expect(served).toEqual(['first', 'later'])

    b?.release()
    await own
    expect(budget.reservedBytes).toBe(30 + 10 + 10)
  })

  test('refuses who waits too long, who would keep too much while it waits, and who is gone', async () => {
    const budget = budgetOf(20)
    const hold = budget.tryReserve('a', 40, kept)
    expect(await errorOf(budget.reserve('a', 40, kept))).toBeInstanceOf(NoRoom)

    const patient = budgetOf()
    const full = patient.tryReserve('a', 40, kept)
    let isGone = false
    const gone = errorOf(patient.reserve('a', 20, { ...kept, bytesWhileWaiting: 20, isOver: () => isGone }))
    expect(await errorOf(patient.reserve('a', 20, { ...kept, bytesWhileWaiting: 20 }))).toBeInstanceOf(NoRoom)
    isGone = true
    full?.release()
    expect(await gone).toBeInstanceOf(NoRoom)
    expect(patient.reservedBytes).toBe(0)
    hold?.release()
  })

  test('takes back what is over only when it needs room', () => {
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
        giveUp: () => {
          asked.push(name)
          hold?.release()
        },
      })
    }
    holdOf('of another', 'b')
    holdOf('oldest', 'a')
    holdOf('younger', 'a')
    expect(asked).toEqual([])

    await budget.reserve('a', 10, kept)

    await until('the oldest is asked', () => asked.length > 0)
    expect(asked).toEqual(['oldest'])
  })
})
