import { systemClock } from '../adapters/clock-system/system-clock.ts'
import type { StatfsDiskSpace } from '../adapters/disk-space-statfs/statfs-disk-space.ts'
import { HttpWebhookSender } from '../adapters/webhooks-http/http-webhook-sender.ts'
import type { Application } from '../http/exchange.ts'
import { Redirects } from '../http/redirects.ts'
import type { KeyUseRecorder } from '../identity/api-keys.ts'
import type { FailureLimits } from '../identity/failure-limits.ts'
import type { KeyRing } from '../identity/key-ring.ts'
import { TextSealer } from '../lib/text-sealer.ts'
import type { Clock } from '../ports/clock.ts'
import { AuditRecorder } from '../registry/audit.ts'
import { PullRecorder } from '../registry/pulls.ts'
import { UploadWriters } from '../registry/upload-writers.ts'
import { claimBlobStore, nameStore } from './blob-owner.ts'
import { createDataDir, lockForServer, lockForWorker, type ServerLock } from './data-folder.ts'
import { DatabaseClock } from './database-clock.ts'
import { openIdentity, type Warn, type Welcome } from './identity.ts'
import { openMemoryBudget } from './memory-budget.ts'
import { toRegistrySettings } from './registry-settings.ts'
import type { Config } from './settings.ts'
import { describeDataFault } from './start-errors.ts'
import { openDiskSpace, openStores, type Stores } from './stores.ts'
import { version } from './version.ts'
import type { SharedParts } from './workers/shared-parts.ts'

/** The application and the parts that only `run.ts` and the background jobs use. */
export interface Built {
  readonly app: Application
  /** What the first start shows to the operator. Call it when the port is open. */
  readonly welcome: () => Promise<Welcome>
  readonly disk: StatfsDiskSpace
  readonly uses: KeyUseRecorder
  readonly keys: KeyRing
  /** The clock of the database, if several servers share it. */
  readonly databaseClock: DatabaseClock | undefined
  /** The limits for failed logins of this process. A worker uses those of its supervisor instead. */
  readonly failures: FailureLimits
  /** Empties the caches of credentials in this process. */
  clearIdentitiesHere(): void
  /** From now on the server reports that it is not ready, and invites no client to keep its connection. */
  leave(): void
  close(): Promise<void>
}

interface Opened {
  readonly stores: Stores
  readonly disk: StatfsDiskSpace
  readonly machineClock: Clock
  readonly serverLock: ServerLock | undefined
  readonly warn: Warn | undefined
  readonly shared: SharedParts
}

/**
 * Assembles the application from the settings:
 *
 *   stores.ts             which adapters hold metadata, blobs and signing keys
 *   identity.ts           embedded or remote identity service, caches, limits of failed attempts
 *   registry-settings.ts  limits and ages for the rules of the registry
 *   memory-budget.ts      memory for request bodies and answers
 *
 * Only `stores.ts`, `identity.ts` and this file choose adapters. Tests pass a clock that they can move.
 */
export async function buildApplication(
  config: Config,
  machineClock: Clock = systemClock,
  warn?: Warn,
  shared: SharedParts = {},
): Promise<Built> {
  const disk = openDiskSpace(config, machineClock, shared.processes)
  await createDataDir(config)
  let serverLock: ServerLock | undefined
  try {
    serverLock = shared.isWorker ? lockForWorker(config) : lockForServer(config)
    const stores = await openStores(config, { isServer: true, isWorker: shared.isWorker ?? false, disk })
    return await buildOnStores(config, { stores, disk, machineClock, serverLock, warn, shared })
  } catch (error) {
    serverLock?.release()
    throw describeDataFault(error, config)
  }
}

async function buildOnStores(config: Config, opened: Opened): Promise<Built> {
  const { stores, disk, machineClock, serverLock, warn, shared } = opened
  const { metadata, blobs } = stores
  await claimBlobStore(stores)
  if (config.inlineBytes > 0) await metadata.refuseServersWithoutInlineBlobs()
  const isOnlyServer = config.databaseUrl === undefined
  if (isOnlyServer && !shared.isWorker) await metadata.uploads.releaseAllTurns()
  const databaseClock = isOnlyServer ? undefined : await DatabaseClock.start(machineClock, metadata)
  const clock = databaseClock ?? machineClock
  const {
    app: identity,
    keys,
    uses,
    welcome,
    clearHere,
    failures,
  } = await openIdentity(config, stores, clock, warn, shared)
  let isLeaving = false
  const app: Application = {
    metadata,
    blobs,
    clock,
    disk,
    ...identity,
    redirects: config.redirect ? toRedirects(config) : undefined,
    writers: new UploadWriters(clock, shared.endElsewhere),
    audit: new AuditRecorder({ metadata }, clock, {
      keepMs: config.auditKeepMs,
      hasUsers: config.authUrl === undefined,
    }),
    pulls: new PullRecorder(metadata, clock, { periodMs: config.pullsEveryMs, countsHead: config.pullsCountHead }),
    settings: toRegistrySettings(config),
    sealer: new TextSealer(await nameStore(metadata)),
    memory: openMemoryBudget(config),
    webhooks: { sender: openWebhookSender(config, clock), perAccountMax: config.webhooksPerAccount },
    http: toHttpSettings(config),
    isLeaving: () => isLeaving,
  }
  return {
    app,
    disk,
    keys,
    uses,
    welcome,
    databaseClock,
    failures,
    clearIdentitiesHere: clearHere,
    leave: () => {
      isLeaving = true
    },
    close: async () => {
      // If the disk is full, only the last uses of API keys, refusals, logins and pulls are lost.
      await uses.flush().catch(() => undefined)
      await app.audit.flush({ isLast: true }).catch(() => undefined)
      await app.pulls.flush().catch(() => undefined)
      await metadata.close()
      await blobs.close()
      serverLock?.release()
    },
  }
}

function toHttpSettings(config: Config): Application['http'] {
  return {
    publicUrl: config.publicUrl,
    trustedProxies: config.trustedProxies,
    challenge: config.challenge,
    hasRootMount: config.rootMount,
    authUrl: config.authUrl,
    serviceName: 'Berth',
    version,
    docsUrl: config.docsUrl,
    bodyBytesPerSecondMin: config.bodyBytesPerSecond,
    bodyWindowMs: config.bodyWindowMs,
  }
}

export function openWebhookSender(config: Config, clock: Clock): HttpWebhookSender {
  return new HttpWebhookSender(
    {
      timeoutMs: config.webhookTimeoutMs,
      allowedNetworks: config.webhookNetworks,
      allowsHttp: config.webhookHttp,
      userAgent: `Berth/${version}`,
    },
    clock,
  )
}

function toRedirects(config: Config): Redirects {
  return new Redirects({
    lifetimeMs: config.redirectLifetimeMs,
    exceptNetworks: config.redirectExceptNetworks,
    exceptAgents: config.redirectExceptAgents,
  })
}
