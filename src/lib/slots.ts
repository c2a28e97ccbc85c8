/** So many run already, and so many wait, that nothing more is taken. */
export class NoSlot extends Error {
  override readonly name = 'NoSlot'

  constructor() {
    super('too many wait for their turn')
  }
}

/** At most so many pieces of work at once, and so many more that wait, first come first served. */
export class Slots {
  readonly #atOnceMax: number
  readonly #waitingMax: number
  readonly #waiting: (() => void)[] = []
  #running = 0

  constructor(atOnceMax: number, waitingMax: number) {
    this.#atOnceMax = atOnceMax
    this.#waitingMax = waitingMax
  }

  /** As `work` ends; rejects with `NoSlot`, and nothing is begun, when the queue is full. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running < this.#atOnceMax) this.#running += 1
    else await this.#wait()
    try {
      return await work()
    } finally {
      // Handed on without being given up: nobody who comes just now can slip in between.
      const next = this.#waiting.shift()
      if (next === undefined) this.#running -= 1
      else next()
    }
  }

  #wait(): Promise<void> {
    if (this.#waiting.length >= this.#waitingMax) throw new NoSlot()
    return new Promise((resolve) => this.#waiting.push(resolve))
  }
}
