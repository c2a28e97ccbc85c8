// A replica in its own process that can be held at any step of any use case: while it is held, the test decides what
// another process does meanwhile. It answers HTTP like any other, and collects when it is told to.
import { expect } from 'bun:test'
import { join } from 'node:path'
import type { GarbageAges } from '../../../src/ports/garbage.ts'
import type { Collected } from '../../../src/registry/garbage.ts'
import { testNeeding } from '../basics/needs.ts'
import { useRunning } from '../basics/running.ts'
import { adminSettings } from '../basics/test-project.ts'
import { until } from '../clocks/until.ts'
import { hourMs } from '../stores/metadata-rows.ts'
import { openSharedStores, type SharedStores, sharedStoresNeed } from './shared-stores.ts'
import { auditShared } from './shared-stores-audit.ts'

/** Before or after a call of the stores: `before garbage.isInUse`, `after transaction`, `before writer.flush`. */
export type Step = `${'before' | 'after'} ${string}`

/** `id` is the number of the hold or of the collection; the answers carry it. */
export type ToReplica =
  | { readonly do: 'hold'; readonly id: number; readonly step: Step }
  | { readonly do: 'let go'; readonly id: number }
  | { readonly do: 'collect'; readonly id: number; readonly ages: GarbageAges }

export interface FromReplica {
  readonly is: 'ready' | 'armed' | 'held' | 'collected'
  readonly id: number
  readonly url?: string
  readonly collected?: Collected
  readonly error?: string
}

/** The first call that reaches the step waits there. */
export interface Hold {
  readonly reached: Promise<void>
  letGo(): void
}

/** Leases are of a day here, and what is collected loses its bytes at once. */
export const ages: GarbageAges = {
  leaseMs: 24 * hourMs,
  quarantineMs: 0,
  uploadIdleMs: 24 * hourMs,
  uploadMaxMs: 7 * 24 * hourMs,
  uploadDoneMs: 24 * hourMs,
  untaggedMs: 0,
  undeleteMs: 0,
  tagHistoryMs: 24 * hourMs,
  holdMs: 300_000,
}

export class GatedReplica {
  readonly #child: Bun.Subprocess
  readonly #waiting = new Map<string, (message: FromReplica) => void>()
  #url = ''
  #ids = 0

  private constructor(stores: SharedStores, settings: Readonly<Record<string, string>>) {
    this.#child = Bun.spawn([process.execPath, join(import.meta.dir, 'gated-replica-process.ts')], {
      env: {
        ...process.env,
        ...stores.settings,
        BERTH_SERVER__PORT: '0',
        ...adminSettings,
        ...settings,
      },
      stdio: ['ignore', 'inherit', 'inherit'],
      serialization: 'json',
      ipc: (message: FromReplica) => this.#hear(message),
    })
  }

  static async start(stores: SharedStores, settings: Readonly<Record<string, string>> = {}): Promise<GatedReplica> {
    const replica = new GatedReplica(stores, settings)
    const ended = replica.#child.exited.then((code) => {
      throw new Error(`the replica ended with ${code} before it was ready`)
    })
    const { url = '' } = await Promise.race([replica.#next('ready', 0), ended])
    ended.catch(() => undefined)
    replica.#url = url
    return replica
  }

  get url(): string {
    return this.#url
  }

  async hold(step: Step): Promise<Hold> {
    const id = ++this.#ids
    const armed = this.#next('armed', id)
    const held = this.#next('held', id)
    this.#child.send({ do: 'hold', id, step } satisfies ToReplica)
    await armed
    const letGo = () => this.#child.send({ do: 'let go', id } satisfies ToReplica)
    return { reached: held.then(() => undefined), letGo }
  }

  /** Begins the work, and waits until it is at the step. The result lets it go on, and gives what came of it. */
  async holdDuring<T>(step: Step, begin: () => Promise<T>): Promise<() => Promise<T>> {
    const hold = await this.hold(step)
    const working = begin()
    // A replica that is killed at the step gives no answer.
    working.catch(() => undefined)
    await hold.reached
    return () => {
      hold.letGo()
      return working
    }
  }

  async collect(more: Partial<GarbageAges> = {}): Promise<Collected> {
    const id = ++this.#ids
    const ended = this.#next('collected', id)
    this.#child.send({ do: 'collect', id, ages: { ...ages, ...more } } satisfies ToReplica)
    const { collected, error } = await ended
    if (collected === undefined) throw new Error(error)
    return collected
  }

  /** SIGKILL, at whatever step it is. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#child.exited
  }

  #next(is: FromReplica['is'], id: number): Promise<FromReplica> {
    return new Promise((resolve) => this.#waiting.set(`${is} ${id}`, resolve))
  }

  #hear(message: FromReplica): void {
    const what = `${message.is} ${message.id}`
    this.#waiting.get(what)?.(message)
    this.#waiting.delete(what)
  }
}

async function startGatedPair(settings: Readonly<Record<string, string>>) {
  const stores = await openSharedStores()
  const isLocked = async (condition: string): Promise<boolean> => {
    const rows = await stores.ask(
      `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND ${condition}`,
    )
    return rows.length > 0
  }
  const pair = {
    stores,
    a: await GatedReplica.start(stores, settings),
    b: await GatedReplica.start(stores, settings),
    /** Resolves when a transaction waits for another's lock. */
    async somebodyWaits(): Promise<void> {
      await until('a connection waits for a lock', () => isLocked("wait_event_type = 'Lock'"))
    },
    /** SIGKILL to `a`, and another in its place; what the dead one had locked is free when this is done. */
    async killA(): Promise<void> {
      await pair.a.kill()
      await until('its transactions are over', async () => !(await isLocked("state LIKE 'idle in transaction%'")))
      pair.a = await GatedReplica.start(stores, settings)
    },
    async stop(): Promise<void> {
      await Promise.all([pair.a.kill(), pair.b.kill()])
      await stores.close()
    },
  }
  return pair
}

/**
 * For the top of a test file: a pair for its tests, and a test that ends with an audit of both stores. Blobs of any size are
 * objects, because most steps at which a test can hold a replica are steps of an object. `mayLeaveOrphans`:
 * a writer that lost its turn leaves objects behind, which only a sweep finds.
 */
export function useGatedPair({ mayLeaveOrphans = false } = {}) {
  const pair = useRunning(() => startGatedPair({ BERTH_STORAGE__INLINE_BYTES: '0' }), sharedStoresNeed)
  const race = (name: string, body: () => Promise<void>) =>
    testNeeding(sharedStoresNeed, name, async () => {
      await body()
      const { faults, strays } = await auditShared(pair.stores)
      expect({ faults, orphans: mayLeaveOrphans ? [] : strays }).toEqual({ faults: [], orphans: [] })
    })
  return { pair, race }
}
