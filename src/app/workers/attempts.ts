import type { Attempt, AttemptResult, FailureLimits } from '../../identity/failure-limits.ts'
import { RegistryRefusal, Unavailable } from '../../oci/errors.ts'
import type { BegunAttempt } from './calls.ts'

type End = (result: AttemptResult) => void

/** The attempts of one worker, under the limits for failed logins of the whole server. */
export class AttemptsOfWorker {
  readonly #limits: Pick<FailureLimits, 'begin'>
  readonly #running = new Map<number, End>()
  #lastTicket = 0
  #isClosed = false

  constructor(limits: Pick<FailureLimits, 'begin'>) {
    this.#limits = limits
  }

  async begin(attempt: Attempt): Promise<BegunAttempt> {
    try {
      const end = await this.#limits.begin(attempt)
      if (this.#isClosed) end('failed')
      this.#lastTicket += 1
      this.#running.set(this.#lastTicket, end)
      return { ticket: this.#lastTicket }
    } catch (error) {
      if (error instanceof RegistryRefusal) return { refusal: error.refusal, details: error.details }
      if (error instanceof Unavailable) return { unavailable: error.dependency }
      throw error
    }
  }

  end(ticket: number, result: AttemptResult): void {
    const end = this.#running.get(ticket)
    this.#running.delete(ticket)
    end?.(result)
  }

  /** The results of the attempts that run will never be known. */
  close(): void {
    this.#isClosed = true
    for (const end of this.#running.values()) end('failed')
    this.#running.clear()
  }
}
