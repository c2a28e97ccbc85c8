import { existsSync, statSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { FilesystemBlobStore } from '../adapters/blobs-filesystem/filesystem-blob-store.ts'
import { StatfsDiskSpace } from '../adapters/disk-space-statfs/statfs-disk-space.ts'
import type { Database } from '../adapters/metadata-sql/database.ts'
import { listAll, listMissing, migrate } from '../adapters/metadata-sql/migrate.ts'
import { PostgresDatabase } from '../adapters/metadata-sql/postgres-database.ts'
import { SqlMetadataStore } from '../adapters/metadata-sql/sql-metadata-store.ts'
import { SqliteDatabase } from '../adapters/metadata-sql/sqlite-database.ts'
import { FilesystemSigningKeys } from '../adapters/signing-keys-filesystem/filesystem-signing-keys.ts'
import type { BlobStore } from '../ports/blob-store.ts'
import type { Clock } from '../ports/clock.ts'
import type { SigningKeys } from '../ports/signing-keys.ts'
import { createDataDir, whileNoServerRuns } from './data-folder.ts'
import type { Config } from './settings.ts'

/**
 * The stores of a registry. The settings choose the adapters:
 *
 *                   not set                            set
 *   metadata.url    SQLite, and signing keys as files  PostgreSQL, also for the signing keys
 *   storage.s3.bucket   files in data_dir              S3
 *
 * Commands that need no server open only these.
 */
export interface Stores {
  readonly metadata: SqlMetadataStore
  readonly blobs: BlobStore
  readonly signingKeys: SigningKeys
}

interface OpenOptions {
  /** Fail if there is no data yet, so that a command that runs in the wrong folder creates nothing there. */
  readonly mustBeThere?: boolean
  /** The caller is a server, which holds the server lock of the data folder. */
  readonly isServer?: boolean
  /** The caller is a worker, whose supervisor has the stores open. */
  readonly isWorker?: boolean
  /** The disks whose reserve is kept. Commands of an operator give none, because they may use the reserve. */
  readonly disk?: StatfsDiskSpace
}

export async function openStores(config: Config, options: OpenOptions = {}): Promise<Stores> {
  const stores = await openMovableStores(config, options)
  if ((await stores.metadata.marks.find('move-from')) === undefined) return stores
  await stores.metadata.close()
  await stores.blobs.close()
  throw new Error(
    'a registry is being moved to these stores, and the move is not finished: run `berth migrate-store` again first',
  )
}

/** As `openStores`, but also opens the target of a move that is not finished. */
export async function openMovableStores(
  config: Config,
  { mustBeThere = false, isServer = false, isWorker = false, disk }: OpenOptions = {},
): Promise<Stores> {
  const { dataDir } = config
  if (mustBeThere && config.databaseUrl === undefined && !existsSync(sqlitePath(config))) {
    throw new Error(`there is no data in ${dataDir} (setting data_dir)`)
  }
  await createDataDir(config)
  const blobs = await openBlobs(config, disk, isServer)
  const metadata = await openMetadata(config, isServer, isWorker)
  const signingKeys =
    config.databaseUrl === undefined ? new FilesystemSigningKeys(join(dataDir, 'identity')) : metadata.signingKeys()
  return { metadata, blobs, signingKeys }
}

/** Applies the missing migrations and returns their versions. A dry run only returns them; it creates nothing, not even a file. */
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

/** The local disks that a server writes to. There are none if both stores are elsewhere. */
export function openDiskSpace(config: Config, clock: Clock, processes?: number): StatfsDiskSpace {
  const folders: string[] = []
  if (config.bucket === undefined) folders.push(blobsPath(config))
  if (config.databaseUrl === undefined) folders.push(config.dataDir)
  return new StatfsDiskSpace(folders, config.minFreeBytes, clock, processes)
}

async function openMetadata(config: Config, isServer: boolean, isWorker: boolean): Promise<SqlMetadataStore> {
  const database = openDatabase(config, isWorker)
  const mayMigrate = config.migrate === 'auto'
  const open = () => SqlMetadataStore.open(database, { mayMigrate })
  return isServer || !mayMigrate ? open() : whileNoServerRuns(config, database, open)
}

function openDatabase(config: Config, isWorker = false): Database {
  if (config.databaseUrl === undefined) return new SqliteDatabase(sqlitePath(config), { isWorker })
  return new PostgresDatabase({
    url: config.databaseUrl,
    connectionsMax: config.databaseConnections,
    queueMax: config.databaseQueue,
    statementTimeoutMs: config.databaseStatementMs,
    lockTimeoutMs: config.databaseLockMs,
  })
}

/** Commands work on a damaged folder too: `berth gc` collects what it can. */
async function openBlobs(config: Config, disk: StatfsDiskSpace | undefined, isServer: boolean): Promise<BlobStore> {
  if (config.bucket === undefined) return FilesystemBlobStore.open(blobsPath(config), disk, { mayBeDamaged: !isServer })
  // The adapter for S3 is loaded only where it is used.
  const { openS3BlobStore } = await import('./s3-settings.ts')
  return openS3BlobStore(config, config.bucket, disk)
}

function blobsPath({ dataDir }: Config): string {
  return join(dataDir, 'blobs')
}

function sqlitePath({ dataDir }: Config): string {
  return join(dataDir, 'metadata.sqlite')
}
