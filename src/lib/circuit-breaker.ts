/** What stands behind failed too often just now, and is left alone for a moment. */
export class CircuitOpen extends Error {
  override readonly name = 'CircuitOpen'

  constructor() {
    super('it failed too often just now and is left alone for a moment')
  }
}

const failuresMax = 5
const pauseMs = 2_000

/**
 * Stands before something that may be down, so that nobody waits long to learn it and it is left in peace to come back.
 * After 5 failures in a row it lets nothing through for 2 s, then one call on trial: as that one ends, it stays.
 */
export class CircuitBreaker {
  readonly #now: () => number
  #failures = 0
  /** Set while nothing is let through. */
  #openUntil: number | undefined
  #isOnTrial = false

  constructor(now: () => number) {
    this.#now = now
  }

  /** As `work` ends; rejects with `CircuitOpen`, and nothing is begun, while the circuit is open. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#openUntil === undefined) return this.#runClosed(work)
    if (this.#isOnTrial || this.#now() < this.#openUntil) throw new CircuitOpen()
    return this.#runTrial(work)
  }

  async #runClosed<T>(work: () => Promise<T>): Promise<T> {
    try {
      const value = await work()
      this.#failures = 0
      return value
    } catch (error) {
      this.#failures += 1
      // Calls that began before it opened say nothing new: only the trial decides then.
      if (this.#failures >= failuresMax && this.#openUntil === undefined) this.#openUntil = this.#now() + pauseMs
      throw error
    }
  }

  async #runTrial<T>(work: () => Promise<T>): Promise<T> {
    this.#isOnTrial = true
    try {
      const value = await work()
      this.#openUntil = undefined
      this.#failures = 0
      return value
    } catch (error) {
      this.#openUntil = this.#now() + pauseMs
      throw error
    } finally {
      this.#isOnTrial = false
    }
  }
}
