import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { FilesystemBlobStore } from '../adapters/blobs-filesystem/filesystem-blob-store.ts'
import { systemClock } from '../adapters/clock-system/system-clock.ts'
import type { Database } from '../adapters/metadata-sql/database.ts'
import { PostgresDatabase } from '../adapters/metadata-sql/postgres-database.ts'
import { SqlMetadataStore } from '../adapters/metadata-sql/sql-metadata-store.ts'
import { SqliteDatabase } from '../adapters/metadata-sql/sqlite-database.ts'
import { SqliteServerLock } from '../adapters/metadata-sql/sqlite-server-lock.ts'
import type { Application, Phase } from '../http/exchange.ts'
import type { KeyRing } from '../identity/key-ring.ts'
import type { KeyUses } from '../identity/key-uses.ts'
import { syncFolder } from '../lib/sync-folder.ts'
import type { BlobStore } from '../ports/blob-store.ts'
import type { Clock } from '../ports/clock.ts'
import type { MetadataStore } from '../ports/metadata-store.ts'
import { RunningUploads } from '../registry/running-uploads.ts'
import type { RegistrySettings } from '../registry/settings.ts'
import { openIdentity } from './identity.ts'
import type { Config } from './settings.ts'

/** The stores that a configuration names. Commands that need no server open only these. */
export interface Stores {
  readonly metadata: MetadataStore
  readonly blobs: BlobStore
}

/** The application, and what the assembly alone may do with it. */
export interface Built {
  readonly app: Application
  /** The administrator's first API key, when it was made just now: to be shown once. */
  readonly firstApiKey: string | undefined
  readonly uses: KeyUses
  readonly keys: KeyRing
  /** The way down: `leaving`, then `draining`. */
  enter(phase: Phase): void
  close(): Promise<void>
}

/** `mustBeThere`: a command that is run in the wrong folder is told so, and leaves nothing behind. */
export async function openStores(config: Config, { mustBeThere = false } = {}): Promise<Stores> {
  const { dataDir, databaseUrl } = config
  if (mustBeThere && databaseUrl === undefined && !existsSync(sqlitePath(config))) {
    throw new Error(`there is no data in ${dataDir} (setting data_dir)`)
  }
  const made = await mkdir(dataDir, { recursive: true, mode: 0o700 })
  if (made !== undefined) await syncFolder(dirname(made))
  const blobs = await FilesystemBlobStore.open(join(dataDir, 'blobs'))
  const metadata = await SqlMetadataStore.open(openDatabase(config))
  return { metadata, blobs }
}

function sqlitePath({ dataDir }: Config): string {
  return join(dataDir, 'metadata.sqlite')
}

function openDatabase(config: Config): Database {
  if (config.databaseUrl === undefined) return new SqliteDatabase(sqlitePath(config))
  return new PostgresDatabase({
    url: config.databaseUrl,
    connectionsMax: config.databaseConnections,
    queueMax: config.databaseQueue,
    statementTimeoutMs: config.databaseStatementMs,
    lockTimeoutMs: config.databaseLockMs,
  })
}

/** With `identity.ts`, the only place that chooses adapters. The clock is a parameter for tests that move it. */
export async function buildApplication(config: Config, clock: Clock = systemClock): Promise<Built> {
  const { metadata, blobs } = await openStores(config)
  const serverLock = new SqliteServerLock(join(config.dataDir, 'server.lock'))
  await metadata.uploads.endAllTurns()
  const { app: identity, ...rest } = await openIdentity(config, metadata, clock)
  let phase: Phase = 'serving'
  const app: Application = {
    metadata,
    blobs,
    clock,
    ...identity,
    running: new RunningUploads(clock),
    settings: toRegistrySettings(config),
    http: {
      publicUrl: config.publicUrl,
      trustedProxies: config.trustedProxies,
      challenge: config.challenge,
      hasRootMount: config.rootMount,
      serviceName: 'Berth',
      bodyBytesPerSecondMin: config.bodyBytesPerSecond,
      bodyWindowMs: config.bodyWindowMs,
    },
    phase: () => phase,
  }
  return {
    app,
    ...rest,
    enter: (next) => {
      phase = next
    },
    close: async () => {
      // What is lost with a disk that is full says when a key was last used, and no more.
      await rest.uses.flush().catch(() => undefined)
      await metadata.close()
      serverLock.release()
    },
  }
}

function toRegistrySettings(config: Config): RegistrySettings {
  return {
    autoEnable: config.autoEnable,
    missingContent: config.missingContent,
    additionalMediaTypes: config.additionalMediaTypes,
    manifestBytesMax: config.manifestBytes,
    jsonDepthMax: config.jsonDepth,
    descriptorsMax: config.descriptors,
    blobBytesMax: config.blobBytes,
    uploadsPerRepositoryMax: config.uploadsPerRepository,
    tagsPerPushMax: config.tagsPerPush,
    pageDefault: config.pageDefault,
    pageMax: config.pageMax,
    leaseMs: config.leaseMs,
    quarantineMs: config.quarantineMs,
    uploadIdleMs: config.uploadIdleMs,
    uploadMaxMs: config.uploadMaxMs,
  }
}
