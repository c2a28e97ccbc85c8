import type { StatfsDiskSpace } from '../adapters/disk-space-statfs/statfs-disk-space.ts'
import type { Application } from '../http/exchange.ts'
import type { KeyUseRecorder } from '../identity/api-keys.ts'
import type { KeyRing } from '../identity/key-ring.ts'
import { repeatEvery } from '../lib/intervals.ts'
import type { Log } from '../lib/log.ts'
import type { AccountChange } from '../ports/usage.ts'
import { continueAccountDeletions } from '../registry/account-deletion.ts'
import { removeOldAuditEntries } from '../registry/audit.ts'
import { removeOldEvents } from '../registry/events.ts'
import { collectGarbage, ObjectsUnremoved, sweepOrphansOnce } from '../registry/garbage.ts'
import { findCrossings } from '../registry/quotas.ts'
import { isReadOnly } from '../registry/read-only.ts'
import { runDueRetention } from '../registry/retention-run.ts'
import { countExisting, foldUsage } from '../registry/usage.ts'
import { passEventsOn, WebhookDeliverer } from '../registry/webhook-delivery.ts'
import { claimBlobStore } from './blob-owner.ts'
import type { DatabaseClock } from './database-clock.ts'
import { nameBlockedMs, orphanMinAgeMs, toGarbageAges } from './registry-settings.ts'
import { localAddress } from './server-address.ts'
import type { Config } from './settings.ts'

const usesEveryMs = 60_000
const pullsEveryMs = 60_000
const auditEveryMs = 5_000
const keysEveryMs = 600_000
const diskEveryMs = 10_000
const clockEveryMs = 60_000
const usageEveryMs = 1_000
const eventsEveryMs = 1_000
const oldEventsEveryMs = 600_000
/**
 * The metadata store records when the next sweep is due, because a server may not run for as long as the time between two
 * sweeps. Each server checks this often whether it is due.
 */
const sweepCheckEveryMs = 3_600_000

/** The metadata store records when the policies are applied next, as for the sweep. */
const retentionCheckEveryMs = 600_000

export interface JobNeeds {
  readonly app: Application
  readonly disk: StatfsDiskSpace
  readonly uses: KeyUseRecorder
  readonly keys: KeyRing
  /** The clock of the database, if several servers share it. */
  readonly databaseClock: DatabaseClock | undefined
}

/** Periodic work in the background. Every job of a registry with several servers may run on all of them at once. */
export class Jobs {
  readonly #built: JobNeeds
  readonly #log: Log
  readonly #config: Config
  readonly #timers: (() => void)[] = []
  readonly #running = new Set<Promise<void>>()
  readonly #deliverer: WebhookDeliverer
  #isStopped = false
  #isDiskLow = false
  #isUsageCounted = false

  constructor(built: JobNeeds, log: Log, config: Config) {
    this.#built = built
    this.#log = log
    this.#config = config
    const { metadata, clock, webhooks, sealer } = built.app
    const { publicUrl, webhookGiveUpMs: giveUpMs, webhookTimeoutMs: timeoutMs } = config
    const origin = publicUrl ?? `http://${localAddress(config, config.port)}`
    const settings = { origin, giveUpMs, timeoutMs, firstDelayMs: 5_000 }
    this.#deliverer = new WebhookDeliverer({ metadata, clock, sealer, sender: webhooks.sender, settings })
  }

  start(): void {
    const { app, keys } = this.#built
    this.#every(this.#config.garbageEveryMs, 'garbage collection', async () => {
      await this.#collect()
    })
    this.#every(Math.min(this.#config.sweepEveryMs, sweepCheckEveryMs), 'sweeping the blob store', () => this.#sweep())
    this.#every(eventsEveryMs, 'delivering events', async () => {
      await passEventsOn(app, () => this.#isStopped)
      await this.#deliverer.start()
    })
    this.#every(oldEventsEveryMs, 'removing old events', async () => {
      const { eventsKeepMs: deliveriesMs, auditKeepMs } = this.#config
      // The audit log shows events.
      const eventsMs = Math.max(deliveriesMs, auditKeepMs)
      await removeOldEvents(app, { eventsMs, deliveriesMs }, () => this.#isStopped)
    })
    this.#every(Math.min(this.#config.retentionEveryMs, retentionCheckEveryMs), 'applying retention policies', () =>
      this.#applyRetention(),
    )
    this.#reportDisk()
    this.#every(diskEveryMs, 'checking the disk', async () => this.#reportDisk())
    this.#every(keysEveryMs, 'rotating the signing keys', async () => {
      if (!(await isReadOnly(app))) await keys.tend()
    })
    this.#every(usageEveryMs, 'adding up the usage of accounts', () => this.#addUpUsage())
    this.startOfWorker()
  }

  /** The jobs of each process of a server. All others are done once for each server. */
  startOfWorker(): void {
    const { app, uses, databaseClock } = this.#built
    if (databaseClock !== undefined)
      this.#every(clockEveryMs, 'reading the time of the database', () => databaseClock.synchronize())
    this.#every(usesEveryMs, 'recording the last use of API keys', () => uses.flush())
    this.#every(auditEveryMs, 'writing the audit log', () => app.audit.flush())
    this.#every(pullsEveryMs, 'recording the last pulls', () => app.pulls.flush())
  }

  async #collect(): Promise<void> {
    const { app } = this.#built
    const deleted = await continueAccountDeletions(app, nameBlockedMs(this.#config), () => this.#isStopped)
    if (deleted.rows + deleted.accounts > 0) this.#log.write('info', 'accounts deleted', { ...deleted })
    const collecting = collectGarbage(app, toGarbageAges(this.#config), () => this.#isStopped)
    const collected = await collecting.catch((error: unknown) => {
      if (!(error instanceof ObjectsUnremoved)) throw error
      for (const object of error.failures) {
        this.#log.write('warn', 'an object cannot be removed; the next collection tries again', { ...object })
      }
      return { ...error.collected, kept: error.count }
    })
    const auditEntries = await removeOldAuditEntries(app, this.#config.auditKeepMs, () => this.#isStopped)
    this.#log.write('info', 'garbage collected', { ...collected, auditEntries })
  }

  async #addUpUsage(): Promise<void> {
    const { app } = this.#built
    const changes: AccountChange[] = []
    await foldUsage(
      app,
      () => this.#isStopped,
      (change) => changes.push(change),
    )
    for (const warning of await findCrossings(app, changes)) {
      this.#log.write('warn', 'an account has used 80 % of its quota', { ...warning })
    }
    if (!this.#isUsageCounted) this.#isUsageCounted = !(await countExisting(app, () => this.#isStopped))
  }

  /** Logs when a disk reaches its reserve, and when it has space again. */
  #reportDisk(): void {
    const { disk } = this.#built
    const isLow = disk.isLow()
    if (isLow === this.#isDiskLow) return
    this.#isDiskLow = isLow
    const disks = disk.describe()
    if (isLow)
      this.#log.write('error', 'pushes are refused: a disk has less free space than storage.min_free', { disks })
    else this.#log.write('info', 'pushes are accepted again: the disk has free space', { disks })
  }

  /** Lists the whole blob store, so one server does it for all. */
  async #sweep(): Promise<void> {
    const { app } = this.#built
    const swept = await sweepOrphansOnce(
      app,
      { ageMs: orphanMinAgeMs(this.#config), everyMs: this.#config.sweepEveryMs },
      // The store may have got another owner since the start: its objects must not be taken for orphans.
      () => claimBlobStore(app),
      () => this.#isStopped,
    )
    if (swept?.isWhole) this.#log.write('info', 'blob store swept', { trashed: swept.trashed })
  }

  /** One server does it for all. */
  async #applyRetention(): Promise<void> {
    const run = await runDueRetention(this.#built.app, this.#config.retentionEveryMs, () => this.#isStopped)
    if (run === undefined) return
    const { skipped, ...counts } = run
    if (skipped.length > 0) {
      this.#log.write('warn', 'retention policies of these accounts cannot be read and were skipped', { skipped })
    }
    if (run.accounts > 0) this.#log.write('info', 'retention policies applied', counts)
  }

  /** Waits for the current step of each job. The next server or start repeats what was not finished. */
  async stop(): Promise<void> {
    this.#isStopped = true
    for (const stopTimer of this.#timers) stopTimer()
    await this.#deliverer.stop()
    await Promise.all(this.#running)
  }

  /** Runs the work periodically, but never twice at once: a tick is skipped while the work still runs. A period of 0 means never. */
  #every(periodMs: number, what: string, work: () => Promise<void>): void {
    if (periodMs === 0) return
    const attempt = async (): Promise<void> => {
      if (this.#isStopped) return
      try {
        await work()
      } catch (error) {
        // The next tick tries again. No job loses anything by the delay.
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
    this.#timers.push(repeatEvery(periodMs, tick))
  }
}
