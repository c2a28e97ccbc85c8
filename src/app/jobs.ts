import type { Log } from '../lib/log.ts'
import { repeatEvery } from '../lib/long-interval.ts'
import { collectGarbage, ObjectsKept, sweepInTurn } from '../registry/garbage.ts'
import { isReadOnly } from '../registry/read-only.ts'
import { type Built, ownBlobs } from './build.ts'
import { garbageAges, strayAgeMs } from './garbage-ages.ts'
import type { Config } from './settings.ts'
import { nameStore } from './store-move/move-state.ts'

const usesEveryMs = 60_000
const keysEveryMs = 600_000
/** How soon the log tells of a disk that is nearly full. */
const diskEveryMs = 10_000
const clockEveryMs = 60_000
/** Whose turn it is stands in the store: a server may not live as long as the time between two sweeps. */
const sweepLooksEveryMs = 3_600_000

type JobNeeds = Pick<Built, 'app' | 'disk' | 'uses' | 'keys' | 'sharedClock'>

/** The clocks: work that is nobody's request. */
export class Jobs {
  readonly #built: JobNeeds
  readonly #log: Log
  readonly #config: Config
  readonly #endings: (() => void)[] = []
  readonly #running = new Set<Promise<void>>()
  #isStopped = false
  #isDiskLow = false

  constructor(built: JobNeeds, log: Log, config: Config) {
    this.#built = built
    this.#log = log
    this.#config = config
  }

  start(): void {
    const { app, uses, keys, sharedClock } = this.#built
    this.#every(this.#config.garbageEveryMs, 'garbage collection', async () => {
      await this.#collect()
    })
    this.#every(Math.min(this.#config.sweepEveryMs, sweepLooksEveryMs), 'sweeping the blob store', () => this.#sweep())
    if (sharedClock !== undefined) this.#every(clockEveryMs, 'asking for the time', () => sharedClock.look())
    this.#tellOfDisk()
    this.#every(diskEveryMs, 'looking at the disk', async () => this.#tellOfDisk())
    this.#every(usesEveryMs, 'noting the uses of API keys', () => uses.flush())
    this.#every(keysEveryMs, 'tending the signing keys', async () => {
      if (!(await isReadOnly(app))) await keys.tend()
    })
  }

  async #collect(): Promise<void> {
    const collecting = collectGarbage(this.#built.app, garbageAges(this.#config), () => this.#isStopped)
    const collected = await collecting.catch((error: unknown) => {
      if (!(error instanceof ObjectsKept)) throw error
      for (const one of error.kept)
        this.#log.write('warn', 'an object cannot be removed; the next collection tries again', { ...one })
      return { ...error.collected, kept: error.count }
    })
    this.#log.write('info', 'garbage collected', { ...collected })
  }

  #tellOfDisk(): void {
    const { disk } = this.#built
    const isLow = disk.isLow()
    if (isLow === this.#isDiskLow) return
    this.#isDiskLow = isLow
    if (isLow)
      this.#log.write('error', 'pushes are refused: a disk has less free space than storage.min_free', {
        disks: disk.describe(),
      })
    else this.#log.write('info', 'pushes are taken again: the disk has free space', { disks: disk.describe() })
  }

  /** Once for all servers of the store: each looks at it through everything that is there. */
  async #sweep(): Promise<void> {
    const { app } = this.#built
    const swept = await sweepInTurn(
      app,
      { ageMs: strayAgeMs(this.#config), everyMs: this.#config.sweepEveryMs },
      // Once more than at the start: what is another's now must not be taken for strays.
      async () => ownBlobs(app, await nameStore(app.metadata)),
      () => this.#isStopped,
    )
    if (swept?.isWhole) this.#log.write('info', 'blob store swept', { trashed: swept.trashed })
  }

  /** Waits for the steps that are running; every step can be repeated, so none has to be finished. */
  async stop(): Promise<void> {
    this.#isStopped = true
    for (const end of this.#endings) end()
    await Promise.all(this.#running)
  }

  /** Each by itself, and never twice at once: a tick that finds its work still running is left out. 0 is never. */
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
    let running: Promise<void> | undefined
    const tick = (): void => {
      if (running !== undefined) return
      const started = attempt().finally(() => {
        running = undefined
        this.#running.delete(started)
      })
      running = started
      this.#running.add(started)
    }
    this.#endings.push(repeatEvery(periodMs, tick))
  }
}
