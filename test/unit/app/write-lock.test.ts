import { describe, expect, test } from 'bun:test'
import { LockArbiter, LockedTasks, type LockUser } from '../../../src/app/workers/write-lock.ts'
import { Gate } from '../../support/clocks/gates.ts'

interface Process {
  readonly tasks: LockedTasks
  readonly user: LockUser
  /** How many messages it has sent. */
  sent(): number
}

/** A process whose messages arrive later, as those over a channel do. */
function newProcess(arbiter: LockArbiter): Process {
  let sent = 0
  const later = (act: () => void) => void setTimeout(act, 1)
  const user: LockUser = {
    grant: (isWanted) => later(() => tasks.grant(isWanted)),
    revoke: () => later(() => tasks.revoke()),
  }
  const send = (act: () => void) => {
    sent += 1
    later(act)
  }
  const tasks = new LockedTasks({
    request: () => send(() => arbiter.request(user)),
    release: () => send(() => arbiter.release(user)),
  })
  return { tasks, user, sent: () => sent }
}

describe('the lock of writers', () => {
  test('is held by one process at a time, and each process gets its turn', async () => {
    const arbiter = new LockArbiter()
    const processes = Array.from({ length: 3 }, () => newProcess(arbiter))
    let inside = 0
    const order: number[] = []
    const task = (index: number) => async () => {
      inside += 1
      expect(inside).toBe(1)
      await Bun.sleep(3)
      order.push(index)
      inside -= 1
    }
    await Promise.all(processes.flatMap(({ tasks }, index) => Array.from({ length: 20 }, () => tasks.run(task(index)))))

    expect(order).toHaveLength(60)
    // A task takes longer than a process may keep the lock, so no process runs two tasks before the others have run one.
    for (let start = 0; start + 3 <= 57; start += 3) expect(new Set(order.slice(start, start + 3)).size).toBe(3)
  })

  test('stays with a process that writes alone, which sends no further messages', async () => {
    const { tasks, sent } = newProcess(new LockArbiter())
    for (let round = 0; round < 5; round += 1) await tasks.run(async () => undefined)
    expect(sent()).toBe(1)
  })

  test('leaves a process that does nothing, when another process asks for it', async () => {
    const arbiter = new LockArbiter()
    const [a, b] = [newProcess(arbiter), newProcess(arbiter)]
    await a.tasks.run(async () => undefined)
    expect(await b.tasks.run(async () => 'done')).toBe('done')
  })

  test('passes on when the process that holds it ends', async () => {
    const arbiter = new LockArbiter()
    const [a, b] = [newProcess(arbiter), newProcess(arbiter)]
    const gate = new Gate()
    void a.tasks.run(gate.pass)
    await gate.reached
    const other = b.tasks.run(async () => 'done')
    arbiter.remove(a.user)
    expect(await other).toBe('done')
    gate.open()
  })

  test('is not waited for without end: SQLite has a lock of its own', async () => {
    const tasks = new LockedTasks({ request: () => undefined, release: () => undefined })
    expect(await tasks.run(async () => 'done')).toBe('done')
  }, 10_000)

  test('is kept if a task fails, and the next task runs', async () => {
    const { tasks } = newProcess(new LockArbiter())
    const failing = tasks.run(async () => {
      throw new Error('planned')
    })
    expect(await failing.catch(String)).toBe('Error: planned')
    expect(await tasks.run(async () => 'done')).toBe('done')
  })
})
