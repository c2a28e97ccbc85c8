import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { NoSlot, Slots } from '../../../src/lib/slots.ts'
import { errorOf } from '../../support/basics/outcomes.ts'

async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve()
}

/** A task that takes a slot until it is released, runs until it ends, or throws before it returns a promise. */
interface Task {
  readonly kind: 'take' | 'run' | 'throw'
  end(hasFailed: boolean): void
}

/** The number of a task that arrives, or the end of one of the tasks that run. */
type Step = Task['kind'] | readonly [which: number, hasFailed: boolean]

/** Runs the steps, and compares the tasks that began and the result of each task with a model after each step. */
async function follow(atOnceMax: number, waitingMax: number, steps: readonly Step[]): Promise<void> {
  const slots = new Slots(atOnceMax, waitingMax)
  const seen = { began: [] as Task[], results: new Map<Task, string>() }
  const model = { began: [] as Task[], results: new Map<Task, string>() }
  const running: Task[] = []
  const waiting: Task[] = []
  const beginInModel = (task: Task | undefined): void => {
    if (task === undefined) return
    model.began.push(task)
    if (task.kind !== 'throw') return void running.push(task)
    model.results.set(task, 'at once')
    beginInModel(waiting.shift())
  }
  const arrive = (kind: Task['kind']): void => {
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    const task = { kind, end: (hasFailed: boolean) => (hasFailed ? reject(new Error('failed')) : resolve('done')) }
    const begin = () => {
      seen.began.push(task)
      if (kind === 'throw') throw new Error('at once')
      return promise
    }
    const hold = async () => {
      const release = slots.tryTake() ?? (await slots.take())
      const result = await begin().catch(({ message }: Error) => message)
      release()
      release()
      return result
    }
    void (kind === 'take' ? hold() : slots.run(begin))
      .catch((error: Error) => (error instanceof NoSlot ? 'refused' : error.message))
      .then((result) => seen.results.set(task, result))
    if (running.length < atOnceMax) beginInModel(task)
    else if (waiting.length < waitingMax) waiting.push(task)
    else model.results.set(task, 'refused')
  }
  for (const step of steps) {
    if (typeof step === 'string') arrive(step)
    else {
      const [task] = running.splice(step[0] % Math.max(running.length, 1), 1)
      task?.end(step[1])
      if (task !== undefined) model.results.set(task, step[1] ? 'failed' : 'done')
      if (task !== undefined) beginInModel(waiting.shift())
    }
    await settle()
    expect([seen, slots.waiting]).toEqual([model, waiting.length])
  }
}

describe('slots', () => {
  test('run so many tasks at once and the others in their order, refuse the rest, and are released once', async () => {
    const arrival = fc.constantFrom<Step>('run', 'take', 'throw')
    const end = fc.tuple(fc.nat(3), fc.boolean())
    const steps = fc.array(fc.oneof(arrival, end), { maxLength: 40 })
    await fc.assert(fc.asyncProperty(fc.integer({ min: 1, max: 3 }), fc.nat(3), steps, follow), { numRuns: 200 })
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
    const slots = new Slots(1, 1, 20)
    const release = await slots.take()
    expect(await errorOf(slots.take())).toBeInstanceOf(NoSlot)

    const next = slots.take()
    release()
    const releaseNext = await next
    // A task that began in time is not refused later.
    await Bun.sleep(40)
    expect(await errorOf(slots.take())).toBeInstanceOf(NoSlot)
    releaseNext()
    expect(await slots.run(async () => 'done')).toBe('done')
  })
})
