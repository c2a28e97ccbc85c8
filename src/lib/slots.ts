/** So many run already, and so many wait, that nothing more is taken. */
export class NoSlot extends Error {
  override readonly name = 'NoSlot'

  constructor() {
    super('too many wait for their turn')
  }
}

/** At most so many pieces of work at once, and so many more that wait, first come first served; each only so long. */
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

  /** As `work` ends; rejects with `NoSlot`, and nothing is begun, when the queue is full or the wait was too long. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (!this.#begin()) await this.#wait()
    try {
      return await work()
    } finally {
      this.#end()
    }
  }

  /** The same for work that ends when the function is called that this gives. Calling it again does nothing. */
  async take(): Promise<() => void> {
    if (!this.#begin()) await this.#wait()
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
    // Handed on without being given up: nobody who comes just now can slip in between.
    const [next] = this.#waiting
    if (next === undefined) this.#running -= 1
    else next()
  }

  #wait(): Promise<void> {
    if (this.#waiting.size >= this.#waitingMax) throw new NoSlot()
    return new Promise((resolve, reject) => {
      const goOn = (): void => {
        clearTimeout(timer)
        this.#waiting.delete(goOn)
        resolve()
      }
      const giveUp = (): void => {
        this.#waiting.delete(goOn)
        reject(new NoSlot())
      }
      const timer = this.#waitMaxMs === undefined ? undefined : setTimeout(giveUp, this.#waitMaxMs)
      this.#waiting.add(goOn)
    })
  }
}
