// Failure limits with a clock that stands still until it is moved.
import { type Attempt, FailureLimits, type FailureSettings } from '../../../src/identity/failure-limits.ts'
import { RegistryRefusal } from '../../../src/oci/errors.ts'

export const usual: FailureSettings = { perMinute: 10, burst: 20, pauseMs: 30_000 }

/** As `Attempt`, from one address. */
export type Tried = Partial<Omit<Attempt, 'from'>> & { readonly from?: string }

/** What a probe throws in place of judging a credential: it leaves nothing behind. */
class Probe extends Error {}

/** Limits with a clock that does not advance, and a client that tries credentials. */
export class Trial {
  now = 1_700_000_000_000
  readonly limits: FailureLimits
  #number = 0

  constructor(settings: Partial<FailureSettings> = {}, more: { readonly limitsUndecided?: boolean } = {}) {
    this.limits = new FailureLimits({ ...usual, ...settings }, { now: () => this.now }, more)
  }

  run<T>({ from = 'a', ...tried }: Tried, work: () => Promise<T | undefined>): Promise<T | undefined> {
    return this.limits.run({ credential: 'c', ...tried, from: [{ name: from, share: 1 }] }, work)
  }

  /** Seconds to wait, or 0 if the client may try. */
  async waitFor(tried: Tried): Promise<number> {
    try {
      await this.run(tried, () => Promise.reject(new Probe()))
    } catch (error) {
      if (error instanceof Probe) return 0
      if (!(error instanceof RegistryRefusal) || error.refusal !== 'too-many-failures') throw error
      return Number(error.details[0]?.['retryAfterSeconds'])
    }
    throw new Error('a probe was judged')
  }

  /** One failure; false where it was refused before it could be one. */
  async fail(tried: Tried): Promise<boolean> {
    try {
      await this.run({ credential: `number ${++this.#number}`, ...tried }, async () => undefined)
      return true
    } catch (error) {
      if (error instanceof RegistryRefusal) return false
      throw error
    }
  }

  async succeed(tried: Tried): Promise<void> {
    await this.run(tried, async () => 'somebody')
  }

  /** Tries something new each time until it is refused; gives how often that went well. */
  async guessUntilRefused(tried: Tried = {}): Promise<number> {
    for (let tries = 0; tries < 10_000; tries += 1) {
      if (!(await this.fail(tried))) return tries
    }
    return Number.POSITIVE_INFINITY
  }
}
