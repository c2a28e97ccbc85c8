import type { Log } from '../lib/log.ts'
import { collectGarbage } from '../registry/garbage.ts'
import type { Stores } from './build.ts'
import { garbageAges } from './garbage-ages.ts'
import type { Config } from './settings.ts'

/** The clocks: work that is nobody's request. */
export class Jobs {
  readonly #stores: Stores
  readonly #log: Log
  readonly #config: Config
  #timer: Timer | undefined
  #running: Promise<void> = Promise.resolve()
  #isStopped = false

  constructor(stores: Stores, log: Log, config: Config) {
    this.#stores = stores
    this.#log = log
    this.#config = config
  }

  start(): void {
    if (this.#config.garbageEveryMs === 0) return
    this.#timer = setInterval(() => {
      this.#running = this.#running.then(() => this.#collect())
    }, this.#config.garbageEveryMs)
  }

  /** Waits for the step that is running; every step can be repeated, so none has to be finished. */
  async stop(): Promise<void> {
    this.#isStopped = true
    clearInterval(this.#timer)
    await this.#running
  }

  async #collect(): Promise<void> {
    if (this.#isStopped) return
    try {
      const collected = await collectGarbage(this.#stores, garbageAges(this.#config), () => this.#isStopped)
      this.#log.write('info', 'garbage collected', { ...collected })
    } catch (error) {
      // The next tick tries again; a collection that fails loses nothing.
      this.#log.write('warn', 'garbage collection failed', { error })
    }
  }
}
