import { existsSync, statSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { FilesystemBlobStore } from '../adapters/blobs-filesystem/filesystem-blob-store.ts'
import { S3BlobStore } from '../adapters/blobs-s3/s3-blob-store.ts'
import { systemClock } from '../adapters/clock-system/system-clock.ts'
import { StatfsDiskSpace } from '../adapters/disk-space-statfs/statfs-disk-space.ts'
import type { Database } from '../adapters/metadata-sql/database.ts'
import { listAll, listMissing, migrate } from '../adapters/metadata-sql/migrate.ts'
import { PostgresDatabase } from '../adapters/metadata-sql/postgres-database.ts'
import { SqlMetadataStore } from '../adapters/metadata-sql/sql-metadata-store.ts'
import { SqliteDatabase } from '../adapters/metadata-sql/sqlite-database.ts'
import { FilesystemSigningKeys } from '../adapters/signing-keys-filesystem/filesystem-signing-keys.ts'
import type { Application } from '../http/exchange.ts'
import { Redirects } from '../http/redirects.ts'
import type { KeyRing } from '../identity/key-ring.ts'
import type { KeyUses } from '../identity/key-uses.ts'
import type { BlobStore } from '../ports/blob-store.ts'
import type { Clock } from '../ports/clock.ts'
import type { MetadataStore } from '../ports/metadata-store.ts'
import type { SigningKeys } from '../ports/signing-keys.ts'
import { RunningUploads } from '../registry/running-uploads.ts'
import type { RegistrySettings } from '../registry/settings.ts'
import { lockForServer, makeDataDir, type ServerLock, whileNoServerRuns } from './data-folder.ts'
import { openIdentity, type Warn, type Welcome } from './identity.ts'
import { openMemoryBudget } from './memory-settings.ts'
import { s3Settings } from './s3-settings.ts'
import type { Config } from './settings.ts'
import { SharedClock } from './shared-clock.ts'
import { describeDataFault } from './start-errors.ts'
import { nameStore } from './store-move/move-state.ts'
import { version } from './version.ts'

/** The stores that a configuration names. Commands that need no server open only these. */
export interface Stores {
  readonly metadata: MetadataStore
  readonly blobs: BlobStore
  readonly signingKeys: SigningKeys
}

/** Stores whose content can be taken to others. */
export interface MovableStores extends Stores {
  readonly metadata: SqlMetadataStore
}

/** The application, and what the assembly alone may do with it. */
export interface Built {
  readonly app: Application
  /** What a first start tells its operator. To be called when the port is open. */
  readonly welcome: () => Promise<Welcome>
  /** The local disks, for the log. */
  readonly disk: StatfsDiskSpace
  readonly uses: KeyUses
  readonly keys: KeyRing
  /** Where several servers share the metadata, their clock. */
  readonly sharedClock: SharedClock | undefined
  /** From now on the server is not ready, and asks nobody to come back. */
  leave(): void
  close(): Promise<void>
}

/** What may be opened, and how. */
interface OpenOptions {
  /** A command that runs in the wrong folder is told so, and leaves nothing behind. */
  readonly mustBeThere?: boolean
  /** The caller holds the server lock of the data folder. */
  readonly isServer?: boolean
  /** The disks whose reserve is kept. Commands of an operator may use it. */
  readonly disk?: StatfsDiskSpace
}

export async function openStores(config: Config, options: OpenOptions = {}): Promise<Stores> {
  const stores = await openMovableStores(config, options)
  if ((await stores.metadata.marks.find('move-from')) === undefined) return stores
  await stores.metadata.close()
  await stores.blobs.close()
  throw new Error('a registry is being moved to these stores: run `berth migrate-store` to its end first')
}

/**
 * Says whose blobs these are, or refuses where they are somebody else's: two registries on one blob store would take each
 * other's bytes for strays, and remove them. Nor is a store that is nobody's taken for the one that is meant. What a move
 * has claimed that was aborted is ours.
 */
export async function ownBlobs(
  { metadata, blobs }: Pick<Stores, 'metadata' | 'blobs'>,
  id: string,
  formerOwner?: string,
): Promise<void> {
  const mayBeNew = (await metadata.marks.find('has-blobs')) === undefined
  const takeFrom = (former: string | undefined) =>
    blobs.claim(id, former === undefined ? { mayBeNew } : { mayBeNew, formerOwner: former })
  let owner = await takeFrom(formerOwner)
  if (owner !== id && owner === (await metadata.marks.find('aborted-to'))) owner = await takeFrom(owner)
  if (owner === undefined) {
    throw new Error(
      `the blobs of this registry, ${id}, are in another store: is the disk mounted, and are the settings those of the other servers?`,
    )
  }
  if (owner !== id) throw new Error(`the blob store belongs to another registry, ${owner}; this one is ${id}`)
  if (mayBeNew) await metadata.transaction(({ marks }) => marks.put('has-blobs', id))
}

/** As they are, an unfinished move to them included. */
export async function openMovableStores(
  config: Config,
  { mustBeThere = false, isServer = false, disk }: OpenOptions = {},
): Promise<MovableStores> {
  const { dataDir } = config
  if (mustBeThere && config.databaseUrl === undefined && !existsSync(sqlitePath(config))) {
    throw new Error(`there is no data in ${dataDir} (setting data_dir)`)
  }
  await makeDataDir(config)
  const blobs = await openBlobs(config, disk, isServer)
  const metadata = await openMetadata(config, isServer)
  const signingKeys =
    config.databaseUrl === undefined ? new FilesystemSigningKeys(join(dataDir, 'identity')) : metadata.signingKeys()
  return { metadata, blobs, signingKeys }
}

async function openMetadata(config: Config, isServer: boolean): Promise<SqlMetadataStore> {
  const database = openDatabase(config)
  const mayMigrate = config.migrate === 'auto'
  const open = () => SqlMetadataStore.open(database, { mayMigrate })
  return isServer || !mayMigrate ? open() : whileNoServerRuns(config, database, open)
}

/** Brings the schema up to date, or only says which versions that would be: then nothing comes to be, not even a file. */
export async function migrateSchema(config: Config, { isDryRun = false } = {}): Promise<readonly number[]> {
  if (config.databaseUrl === undefined) {
    const size = statSync(sqlitePath(config), { throwIfNoEntry: false })?.size ?? 0
    if (isDryRun && size === 0) return listAll()
    await mkdir(config.dataDir, { recursive: true, mode: 0o700 })
  }
  const database = openDatabase(config)
  try {
    return await (isDryRun ? listMissing(database) : whileNoServerRuns(config, database, () => migrate(database)))
  } finally {
    await database.close()
  }
}

/** Commands work on a damaged folder, too: `berth gc` collects what it can. */
async function openBlobs(config: Config, disk: StatfsDiskSpace | undefined, isServer: boolean): Promise<BlobStore> {
  const settings = s3Settings(config)
  if (settings === undefined) return FilesystemBlobStore.open(blobsPath(config), disk, { mayBeDamaged: !isServer })
  return new S3BlobStore({ ...settings, disk })
}

/** The local disks that a server writes to; none where both stores are elsewhere. */
function openDiskSpace(config: Config, clock: Clock): StatfsDiskSpace {
  const folders: string[] = []
  if (config.bucket === undefined) folders.push(blobsPath(config))
  if (config.databaseUrl === undefined) folders.push(config.dataDir)
  return new StatfsDiskSpace(folders, config.minFreeBytes, clock)
}

function blobsPath({ dataDir }: Config): string {
  return join(dataDir, 'blobs')
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
export async function buildApplication(config: Config, machineClock: Clock = systemClock, warn?: Warn): Promise<Built> {
  const disk = openDiskSpace(config, machineClock)
  await makeDataDir(config)
  let serverLock: ServerLock | undefined
  try {
    serverLock = lockForServer(config)
    return await buildOnData(config, { disk, machineClock, serverLock, warn })
  } catch (error) {
    serverLock?.release()
    throw describeDataFault(error, config)
  }
}

interface Surroundings {
  readonly disk: StatfsDiskSpace
  readonly machineClock: Clock
  readonly serverLock: ServerLock | undefined
  readonly warn: Warn | undefined
}

async function buildOnData(config: Config, { disk, machineClock, serverLock, warn }: Surroundings): Promise<Built> {
  const { metadata, blobs, signingKeys } = await openStores(config, { isServer: true, disk })
  await ownBlobs({ metadata, blobs }, await nameStore(metadata))
  const isAlone = config.databaseUrl === undefined
  if (isAlone) await metadata.uploads.endAllTurns()
  const sharedClock = isAlone ? undefined : await SharedClock.start(machineClock, metadata)
  const clock = sharedClock ?? machineClock
  const { app: identity, ...rest } = await openIdentity(config, { metadata, signingKeys }, clock, warn)
  let isLeaving = false
  const app: Application = {
    metadata,
    blobs,
    clock,
    disk,
    ...identity,
    redirects: config.redirect ? toRedirects(config) : undefined,
    running: new RunningUploads(clock),
    settings: toRegistrySettings(config),
    memory: openMemoryBudget(config),
    http: {
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
    },
    isLeaving: () => isLeaving,
  }
  return {
    app,
    disk,
    ...rest,
    sharedClock,
    leave: () => {
      isLeaving = true
    },
    close: async () => {
      // What is lost with a disk that is full says when a key was last used, and no more.
      await rest.uses.flush().catch(() => undefined)
      await metadata.close()
      await blobs.close()
      serverLock?.release()
    },
  }
}

function toRedirects(config: Config): Redirects {
  return new Redirects({
    lifetimeMs: config.redirectLifetimeMs,
    exceptNetworks: config.redirectExceptNetworks,
    exceptAgents: config.redirectExceptAgents,
  })
}

function toRegistrySettings(config: Config): RegistrySettings {
  return {
    autoEnable: config.autoEnable,
    missingContent: config.missingContent,
    additionalMediaTypes: config.additionalMediaTypes,
    manifestBytesMax: config.manifestBytes,
    jsonDepthMax: config.jsonDepth,
    descriptorsMax: config.descriptors,
    annotationsMax: config.annotations,
    annotationBytesMax: config.annotationBytes,
    referrersBytesMax: config.referrersBytes,
    blobBytesMax: config.blobBytes,
    uploadsPerRepositoryMax: config.uploadsPerRepository,
    uploadsPerPrincipalMax: config.uploadsPerPrincipal,
    tagsPerPushMax: config.tagsPerPush,
    pageDefault: config.pageDefault,
    pageMax: config.pageMax,
    leaseMs: config.leaseMs,
    quarantineMs: config.quarantineMs,
    uploadIdleMs: config.uploadIdleMs,
    uploadMaxMs: config.uploadMaxMs,
  }
}
