import type { Clock } from '../ports/clock.ts'
import type { MetadataStore } from '../ports/metadata-store.ts'

/** A look that took longer was waiting for a connection, most of all, and says no more when the answer was given. */
const tellingMs = 1_000

/**
 * The clock of the metadata store, as near as a question to it can tell: what one server says of a time (a token's end,
 * a signing key's turn) all others take alike, whatever their machines believe. Its steps are small once it runs; a
 * machine whose clock jumps is right again after the next look.
 */
export class SharedClock implements Clock {
  readonly #machine: Clock
  readonly #metadata: Pick<MetadataStore, 'now'>
  #aheadMs = 0
  #hasLooked = false

  private constructor(machine: Clock, metadata: Pick<MetadataStore, 'now'>) {
    this.#machine = machine
    this.#metadata = metadata
  }

  static async start(machine: Clock, metadata: Pick<MetadataStore, 'now'>): Promise<SharedClock> {
    const clock = new SharedClock(machine, metadata)
    await clock.look()
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

  /** The answer was given somewhere between question and arrival: in the middle, for all we know. */
  async look(): Promise<void> {
    const askedAt = this.#machine.steadyNow()
    const told = await this.#metadata.now()
    const tookMs = this.#machine.steadyNow() - askedAt
    // What had to wait tells little; before there was any answer, little is better than nothing.
    if (this.#hasLooked && tookMs > tellingMs) return
    this.#hasLooked = true
    this.#aheadMs = Math.round(told + tookMs / 2 - this.#machine.now())
  }
}
