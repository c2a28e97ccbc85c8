/** Too many tasks wait, or the wait was too long. */
export class NoSlot extends Error {
  override readonly name = 'NoSlot'

  constructor() {
    super('too many wait for their turn')
  }
}

/**
 * Limits how many tasks run at once. Others wait in the order of their arrival: a limited number, for a limited time.
 */
export class Slots {
  readonly #atOnceMax: number
  readonly #waitingMax: number
  readonly #waitMaxMs: number | undefined
  readonly #waiting = new Set<() => void>()
  #running = 0

  constructor(atOnceMax: number, waitingMax: number, waitMaxMs?: number) {
    this.#atOnceMax = atOnceMax
    this.#waitingMax = waitingMax
    this.#waitMaxMs = waitMaxMs
  }

  get waiting(): number {
    return this.#waiting.size
  }

  /**
   * The result of `work`. Rejects with `NoSlot`, without a call of `work`, if the queue is full or the wait is too
   * long.
   */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (!this.#begin()) await this.#wait()
    try {
      return await work()
    } finally {
      this.#end()
    }
  }

  /** Takes a slot until the returned function is called, which is idempotent. Rejects as `run` does. */
  async take(): Promise<() => void> {
    if (!this.#begin()) await this.#wait()
    return this.#releaseOnce()
  }

  /** As `take`, but undefined if no slot is free. */
  tryTake(): (() => void) | undefined {
    return this.#begin() ? this.#releaseOnce() : undefined
  }

  #releaseOnce(): () => void {
    let isHeld = true
    return () => {
      if (isHeld) this.#end()
      isHeld = false
    }
  }

  #begin(): boolean {
    if (this.#running >= this.#atOnceMax) return false
    this.#running += 1
    return true
  }

  #end(): void {
    // The slot passes to the next task without becoming free, so that no newer task can take it.
    const [next] = this.#waiting
    if (next === undefined) this.#running -= 1
    else next()
  }

  #wait(): Promise<void> {
    if (this.#waiting.size >= this.#waitingMax) throw new NoSlot()
    return new Promise((resolve, reject) => {
      const start = (): void => {
        clearTimeout(timer)
        this.#waiting.delete(start)
        resolve()
      }
      const refuse = (): void => {
        this.#waiting.delete(start)
        reject(new NoSlot())
      }
      const timer = this.#waitMaxMs === undefined ? undefined : setTimeout(refuse, this.#waitMaxMs)
      this.#waiting.add(start)
    })
  }
}
