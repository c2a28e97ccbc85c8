import { mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { FilesystemBlobStore } from '../adapters/blobs-filesystem/filesystem-blob-store.ts'
import { systemClock } from '../adapters/clock-system/system-clock.ts'
import { SqlMetadataStore } from '../adapters/metadata-sql/sql-metadata-store.ts'
import { SqliteDatabase } from '../adapters/metadata-sql/sqlite-database.ts'
import { SqliteServerLock } from '../adapters/metadata-sql/sqlite-server-lock.ts'
import { FilesystemSigningKeys } from '../adapters/signing-keys-filesystem/filesystem-signing-keys.ts'
import type { Application, Phase } from '../http/exchange.ts'
import { CachedIdentity } from '../identity/cached-identity.ts'
import { EmbeddedIdentity } from '../identity/embedded-identity.ts'
import { ensureAdmin } from '../identity/first-admin.ts'
import { Tokens } from '../identity/tokens.ts'
import { syncFolder } from '../lib/sync-folder.ts'
import type { BlobStore } from '../ports/blob-store.ts'
import type { MetadataStore } from '../ports/metadata-store.ts'
import { RunningUploads } from '../registry/running-uploads.ts'
import type { RegistrySettings } from '../registry/settings.ts'
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
  /** The way down: `leaving`, then `draining`. */
  enter(phase: Phase): void
  close(): Promise<void>
}

export async function openStores(config: Config): Promise<Stores> {
  const made = await mkdir(config.dataDir, { recursive: true, mode: 0o700 })
  if (made !== undefined) await syncFolder(dirname(made))
  const blobs = await FilesystemBlobStore.open(join(config.dataDir, 'blobs'))
  const metadata = await SqlMetadataStore.open(new SqliteDatabase(join(config.dataDir, 'metadata.sqlite')))
  return { metadata, blobs }
}

/** The only place that chooses adapters. */
export async function buildApplication(config: Config): Promise<Built> {
  const { metadata, blobs } = await openStores(config)
  const serverLock = new SqliteServerLock(join(config.dataDir, 'server.lock'))
  await metadata.uploads.endAllTurns()
  const clock = systemClock
  const { users } = metadata
  const firstApiKey = await ensureAdmin(users, {
    name: config.adminName,
    apiKey: config.adminApiKey,
    password: config.adminPassword,
  })
  const tokens = await Tokens.open(new FilesystemSigningKeys(join(config.dataDir, 'identity', 'signing-key.json')))
  const embedded = new EmbeddedIdentity({ users, clock, tokens, roles: config.roles })
  let phase: Phase = 'serving'
  const app: Application = {
    metadata,
    blobs,
    clock,
    identity: new CachedIdentity(embedded, clock, config.identityCacheMs),
    embedded: { users, tokens },
    running: new RunningUploads(clock),
    settings: toRegistrySettings(config),
    http: {
      publicUrl: config.publicUrl,
      hasRootMount: config.rootMount,
      serviceName: 'Berth',
      bodyBytesPerSecondMin: config.bodyBytesPerSecond,
      bodyWindowMs: config.bodyWindowMs,
    },
    phase: () => phase,
  }
  return {
    app,
    firstApiKey,
    enter: (next) => {
      phase = next
    },
    close: async () => {
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
