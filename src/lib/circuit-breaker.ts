/** What stands behind failed too often just now, and is left alone for a moment. */
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
 * Guards calls to a service that may be down: callers learn it at once, and the service is left alone to recover. After 5
 * failures in a row the circuit opens and lets nothing through for 2 s. Then one call is let through on trial. If it
 * succeeds, the circuit closes; if it fails, the circuit stays open for another 2 s.
 *
 * A call can name its origin. Failures of one origin count once, so one origin cannot open the circuit for all others.
 * While the circuit is open, an origin that has failed already waits 2 s longer for its trial, so that it cannot take the
 * trial of the others either. Calls without an origin count each.
 */
export class CircuitBreaker {
  readonly #now: () => number
  #failures = 0
  /** Set while nothing is let through. */
  #openUntil: number | undefined
  #isOnTrial = false
  /** The origins that have failed since the last success. */
  readonly #failed = new Set<string>()

  constructor(now: () => number) {
    this.#now = now
  }

  /** As `work` ends; rejects with `CircuitOpen`, and nothing is begun, while the circuit is open. */
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
      // Calls that began before it opened say nothing new: only the trial decides then.
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
