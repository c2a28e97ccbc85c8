// Failure limits with a clock that stands still until it is moved.
import { type Attempt, FailureLimits, type FailureSettings } from '../../src/identity/failure-limits.ts'
import { RegistryRefusal } from '../../src/oci/errors.ts'

export const usual: FailureSettings = { perMinute: 10, burst: 20, pauseMs: 30_000 }

/** Limits, a clock that stands still, and somebody who tries. */
export class Trial {
  now = 1_700_000_000_000
  readonly limits: FailureLimits
  #number = 0

  constructor(settings: Partial<FailureSettings> = {}) {
    this.limits = new FailureLimits({ ...usual, ...settings }, { now: () => this.now })
  }

  /** Seconds to wait, or 0 for who may try. */
  waitFor(attempt: Partial<Attempt>): number {
    try {
      this.limits.check({ from: 'a', credential: 'c', ...attempt })
      return 0
    } catch (error) {
      if (!(error instanceof RegistryRefusal) || error.refusal !== 'too-many-failures') throw error
      return Number(error.details[0]?.['retryAfterSeconds'])
    }
  }

  fail(attempt: Partial<Attempt>): void {
    this.limits.noteFailure({ from: 'a', credential: `number ${++this.#number}`, ...attempt })
  }

  /** Tries something new each time until it is refused; gives how often that went well. */
  guessUntilRefused(attempt: Partial<Attempt> = {}): number {
    for (let tries = 0; tries < 10_000; tries += 1) {
      if (this.waitFor({ credential: 'new', ...attempt }) > 0) return tries
      this.fail(attempt)
    }
    return Number.POSITIVE_INFINITY
  }
}
