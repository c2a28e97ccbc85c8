import { describe, expect, test } from 'bun:test'
import { NoSlot, Slots } from '../../../src/lib/slots.ts'
import { errorOf } from '../../support/basics/outcomes.ts'

/** Work that goes on until it is told to end, and writes down that it began. */
function heldWork(began: string[]) {
  const ends = new Map<string, PromiseWithResolvers<string>>()
  const work = (name: string) => () => {
    began.push(name)
    const end = Promise.withResolvers<string>()
    ends.set(name, end)
    return end.promise
  }
  return {
    work,
    end: (name: string) => ends.get(name)?.resolve(name),
    fail: (name: string) => ends.get(name)?.reject(new Error(name)),
  }
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve()
}

describe('slots', () => {
  test('run so many at once, and the others as places become free, first come first served', async () => {
    const began: string[] = []
    const { work, end } = heldWork(began)
    const slots = new Slots(2, 2)
    const all = ['a', 'b', 'c', 'd'].map((name) => slots.run(work(name)))
    await settle()
    expect(began).toEqual(['a', 'b'])

    end('b')
    await settle()
    expect(began).toEqual(['a', 'b', 'c'])

    end('a')
    await settle()
    expect(began).toEqual(['a', 'b', 'c', 'd'])
    end('c')
    end('d')
    expect(await Promise.all(all)).toEqual(['a', 'b', 'c', 'd'])
  })

  test('refuse what neither runs nor waits, and begin nothing of it', async () => {
    const began: string[] = []
    const { work, end } = heldWork(began)
    const slots = new Slots(1, 1)
    const [first, second] = [slots.run(work('a')), slots.run(work('b'))]

    expect(await errorOf(slots.run(work('c')))).toBeInstanceOf(NoSlot)

    end('a')
    await first
    const third = slots.run(work('d'))
    await settle()
    expect(began).toEqual(['a', 'b'])
    end('b')
    await second
    await settle()
    end('d')
    expect(await third).toBe('d')
    expect(began).toEqual(['a', 'b', 'd'])
  })

  test('are released by work that fails, now or before it returns a promise', async () => {
    const { work, fail } = heldWork([])
    const slots = new Slots(1, 9)
    const failing = errorOf(slots.run(work('a')))
    const throwing = errorOf(
      slots.run(() => {
        throw new Error('at once')
      }),
    )
    const last = slots.run(async () => 'done')
    fail('a')

    expect([String(await failing), String(await throwing), await last]).toEqual(['Error: a', 'Error: at once', 'done'])
  })

  test('never run more than they may, however work comes and ends', async () => {
    const slots = new Slots(3, 1_000)
    let running = 0
    let most = 0
    const work = (turns: number) => async () => {
      running += 1
      most = Math.max(most, running)
      await settle()
      for (let turn = 0; turn < turns; turn += 1) await Promise.resolve()
      running -= 1
    }

    // Some come while others end: a place that is handed on must not be taken twice.
    const waves = Array.from({ length: 100 }, (_, index) =>
      slots.run(work(index % 7)).then(() => slots.run(work(index % 5))),
    )
    await Promise.all(waves)

    expect([most, running]).toEqual([3, 0])
  })

  test('end a wait at its limit, and forget the waiter', async () => {
    const began: string[] = []
    const { work, end } = heldWork(began)
    const slots = new Slots(1, 1, 20)
    const first = slots.run(work('a'))

    expect(await errorOf(slots.run(work('b')))).toBeInstanceOf(NoSlot)

    const third = slots.run(work('c'))
    end('a')
    await first
    await settle()
    // Work that began in time is not interrupted.
    await Bun.sleep(40)
    end('c')
    expect(await third).toBe('c')
    expect(began).toEqual(['a', 'c'])
  })

  test('are held until they are released, once', async () => {
    const slots = new Slots(1, 9)
    const release = await slots.take()
    const began: string[] = []
    const taking = slots.take().then((next) => {
      began.push('b')
      return next
    })
    const last = slots.run(async () => void began.push('c'))
    await settle()
    expect([began, slots.waiting]).toEqual([[], 2])

    release()
    release()
    const next = await taking
    await settle()
    expect([began, slots.waiting]).toEqual([['b'], 1])

    next()
    await last
    expect([began, slots.waiting]).toEqual([['b', 'c'], 0])
  })
})
