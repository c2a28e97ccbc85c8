import type { Log } from '../lib/log.ts'
import { collectGarbage } from '../registry/garbage.ts'
import type { Built } from './build.ts'
import { garbageAges } from './garbage-ages.ts'
import type { Config } from './settings.ts'

const usesEveryMs = 60_000
const keysEveryMs = 600_000

/** The clocks: work that is nobody's request. */
export class Jobs {
  readonly #built: Pick<Built, 'app' | 'uses' | 'keys'>
  readonly #log: Log
  readonly #config: Config
  readonly #timers: Timer[] = []
  #running: Promise<void> = Promise.resolve()
  #isStopped = false

  constructor(built: Pick<Built, 'app' | 'uses' | 'keys'>, log: Log, config: Config) {
    this.#built = built
    this.#log = log
    this.#config = config
  }

  start(): void {
    const { app, uses, keys } = this.#built
    this.#every(this.#config.garbageEveryMs, 'garbage collection', async () => {
      const collected = await collectGarbage(app, garbageAges(this.#config), () => this.#isStopped)
      this.#log.write('info', 'garbage collected', { ...collected })
    })
    this.#every(usesEveryMs, 'noting the uses of API keys', () => uses.flush())
    this.#every(keysEveryMs, 'tending the signing keys', () => keys.tend())
  }

  /** Waits for the step that is running; every step can be repeated, so none has to be finished. */
  async stop(): Promise<void> {
    this.#isStopped = true
    for (const timer of this.#timers) clearInterval(timer)
    await this.#running
  }

  /** One after the other; 0 is never. */
  #every(periodMs: number, what: string, work: () => Promise<void>): void {
    if (periodMs === 0) return
    const attempt = async (): Promise<void> => {
      if (this.#isStopped) return
      try {
        await work()
      } catch (error) {
        // The next tick tries again; none of this loses anything by waiting.
        this.#log.write('warn', `${what} failed`, { error })
      }
    }
    this.#timers.push(
      setInterval(() => {
        this.#running = this.#running.then(attempt)
      }, periodMs),
    )
  }
}
