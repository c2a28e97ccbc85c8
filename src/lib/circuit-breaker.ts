/** The service has failed too often and is not called for a moment. */
export class CircuitOpen extends Error {
  override readonly name = 'CircuitOpen'

  constructor() {
    super('it failed too often just now and is left alone for a moment')
  }
}

const failuresMax = 5
const pauseMs = 2_000
const originsMax = 1_000

/**
 * Guards calls to a service that may be down: callers fail at once, and the service can recover. After 5 consecutive
 * failures the circuit opens, and no call passes for 2 s. Then one trial call passes. If it succeeds, the circuit
 * closes. If it fails, the circuit stays open for another 2 s.
 *
 * A call can name its origin. All failures of one origin count as one, so that one origin cannot open the circuit for
 * all others. While the circuit is open, an origin that has failed waits 2 s longer for a trial, so that it cannot use
 * up the trials of the others. Calls without an origin count one by one.
 */
export class CircuitBreaker {
  readonly #now: () => number
  #failures = 0
  /** Set while the circuit is open. */
  #openUntil: number | undefined
  #isOnTrial = false
  /** The origins that have failed since the last success. */
  readonly #failed = new Set<string>()

  constructor(now: () => number) {
    this.#now = now
  }

  /** The result of `work`. Rejects with `CircuitOpen`, without a call of `work`, while the circuit is open. */
  async run<T>(work: () => Promise<T>, origin?: string): Promise<T> {
    if (this.#openUntil === undefined) return this.#runClosed(work, origin)
    const extraMs = origin !== undefined && this.#failed.has(origin) ? pauseMs : 0
    if (this.#isOnTrial || this.#now() < this.#openUntil + extraMs) throw new CircuitOpen()
    return this.#runTrial(work, origin)
  }

  async #runClosed<T>(work: () => Promise<T>, origin: string | undefined): Promise<T> {
    try {
      const value = await work()
      this.#failures = 0
      this.#failed.clear()
      return value
    } catch (error) {
      this.#noteFailure(origin)
      // After the circuit has opened, only the trial decides.
      if (this.#failures >= failuresMax && this.#openUntil === undefined) this.#openUntil = this.#now() + pauseMs
      throw error
    }
  }

  #noteFailure(origin: string | undefined): void {
    if (origin === undefined || !this.#failed.has(origin)) this.#failures += 1
    if (origin !== undefined && this.#failed.size < originsMax) this.#failed.add(origin)
  }

  async #runTrial<T>(work: () => Promise<T>, origin: string | undefined): Promise<T> {
    this.#isOnTrial = true
    try {
      const value = await work()
      this.#openUntil = undefined
      this.#failures = 0
      this.#failed.clear()
      return value
    } catch (error) {
      this.#noteFailure(origin)
      this.#openUntil = this.#now() + pauseMs
      throw error
    } finally {
      this.#isOnTrial = false
    }
  }
}
