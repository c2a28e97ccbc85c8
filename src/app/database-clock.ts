import type { Clock } from '../ports/clock.ts'
import type { MetadataStore } from '../ports/metadata-store.ts'

/** A slower answer was mostly waiting for a connection and says little about the time. */
const answerMaxMs = 1_000

/**
 * The time of the database, for several servers that share it. Times that one server stores and another compares (the end of
 * a token, the age of a signing key) must not depend on the clocks of two machines.
 *
 * The clock of this machine runs between two readings; each reading corrects the difference. So the time moves in small
 * steps, and a machine whose clock jumps is right again after the next reading.
 */
export class DatabaseClock implements Clock {
  readonly #machine: Clock
  readonly #metadata: Pick<MetadataStore, 'now'>
  #aheadMs = 0
  #wasRead = false

  private constructor(machine: Clock, metadata: Pick<MetadataStore, 'now'>) {
    this.#machine = machine
    this.#metadata = metadata
  }

  static async start(machine: Clock, metadata: Pick<MetadataStore, 'now'>): Promise<DatabaseClock> {
    const clock = new DatabaseClock(machine, metadata)
    await clock.synchronize()
    return clock
  }

  now(): number {
    return this.#machine.now() + this.#aheadMs
  }

  steadyNow(): number {
    return this.#machine.steadyNow()
  }

  freshId(): string {
    return this.#machine.freshId()
  }

  every(intervalMs: number, act: () => void): Disposable {
    return this.#machine.every(intervalMs, act)
  }

  sleep(ms: number): Promise<void> {
    return this.#machine.sleep(ms)
  }

  /** Reads the time of the database. It is assumed to be the time in the middle between request and answer. */
  async synchronize(): Promise<void> {
    const askedAt = this.#machine.steadyNow()
    const databaseNow = await this.#metadata.now()
    const tookMs = this.#machine.steadyNow() - askedAt
    // A slow first answer is still better than the clock of the machine.
    if (this.#wasRead && tookMs > answerMaxMs) return
    this.#wasRead = true
    this.#aheadMs = Math.round(databaseNow + tookMs / 2 - this.#machine.now())
  }
}
