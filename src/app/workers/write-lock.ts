import { SerialQueue, type TaskQueue } from '../../lib/serial-queue.ts'

// SQLite has one writer at a time. A process that waits for another one inside SQLite sleeps, which stops its event loop,
// and the process that has just written is the likely next writer. So the processes of a server take a lock in the order
// of their requests before they call SQLite. SQLite's own lock still decides: this lock is for fairness only.

/** One process that takes the lock. */
export interface LockUser {
  /** The lock is this user's. `isWanted`: another user waits for it. */
  grant(isWanted: boolean): void
  /** Another user waits: release the lock after the current task. Called at most once for each grant. */
  revoke(): void
}

/** Grants the lock in the order of requests. It is in the supervisor. */
export class LockArbiter {
  readonly #waiting = new Set<LockUser>()
  #holder: LockUser | undefined

  request(user: LockUser): void {
    this.#waiting.add(user)
    if (this.#holder === undefined) this.#grantNext()
    else if (this.#waiting.size === 1) this.#holder.revoke()
  }

  release(user: LockUser): void {
    if (this.#holder !== user) return
    this.#holder = undefined
    this.#grantNext()
  }

  /** The process has ended. */
  remove(user: LockUser): void {
    this.#waiting.delete(user)
    this.release(user)
  }

  #grantNext(): void {
    const [next] = this.#waiting
    if (next === undefined) return
    this.#waiting.delete(next)
    this.#holder = next
    next.grant(this.#waiting.size > 0)
  }
}

/** How long a task waits for the lock. After that it relies on SQLite's own lock. */
const waitMaxMs = 5_000

/** While other processes wait, a process with several tasks keeps the lock for this long. Each change of the holder costs messages. */
const sliceMs = 2

/**
 * The tasks of this process that need the lock, one at a time, in the order of their arrival. The lock is kept until
 * another process asks for it. So the tasks of a process that writes alone send no messages.
 */
export class LockedTasks implements LockUser, TaskQueue {
  readonly #arbiter: { request(): void; release(): void }
  readonly #tasks = new SerialQueue()
  #state: 'free' | 'requested' | 'held' = 'free'
  #isWanted = false
  #isRunning = false
  #grantedAt = 0
  /** Tasks that wait for their turn in this process. */
  #queued = 0
  #onGrant: (() => void) | undefined

  constructor(arbiter: { request(): void; release(): void }) {
    this.#arbiter = arbiter
  }

  run<T>(task: () => Promise<T>): Promise<T> {
    this.#queued += 1
    return this.#tasks.run(async () => {
      this.#queued -= 1
      this.#isRunning = true
      try {
        if (this.#state !== 'held') await this.#waitForGrant()
        return await task()
      } finally {
        this.#isRunning = false
        this.#releaseIfWanted()
      }
    })
  }

  grant(isWanted: boolean): void {
    this.#state = 'held'
    this.#grantedAt = performance.now()
    this.#isWanted = isWanted
    this.#onGrant?.()
    this.#releaseIfWanted()
  }

  revoke(): void {
    this.#isWanted = true
    this.#releaseIfWanted()
  }

  #releaseIfWanted(): void {
    if (this.#state !== 'held' || !this.#isWanted || this.#isRunning) return
    if (this.#queued > 0 && performance.now() - this.#grantedAt < sliceMs) return
    this.#state = 'free'
    this.#isWanted = false
    this.#arbiter.release()
  }

  async #waitForGrant(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, waitMaxMs)
    this.#onGrant = resolve
    if (this.#state === 'free') {
      this.#state = 'requested'
      this.#arbiter.request()
    }
    await promise
    clearTimeout(timer)
    this.#onGrant = undefined
  }
}
