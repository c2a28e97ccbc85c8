// Where the servers of the tests keep what they have: SQLite and files, or a PostgreSQL of the tests' own where
// TEST_METADATA=postgres says so, and an S3 server (which one: TEST_S3) where TEST_BLOBS=s3 does.
import { join } from 'node:path'
import { PostgresDatabase } from '../../../src/adapters/metadata-sql/postgres-database.ts'
import { SqlMetadataStore } from '../../../src/adapters/metadata-sql/sql-metadata-store.ts'
import { SqliteDatabase } from '../../../src/adapters/metadata-sql/sqlite-database.ts'
import { type PostgresServer, startPostgres } from '../postgres/postgres-server.ts'
import type { S3Server } from '../s3/s3-server.ts'
import { freshPrefix, sharedS3 } from '../s3/test-s3.ts'

const urls = new Map<string, string>()
let running: Promise<PostgresServer> | undefined

/** One for the whole run: it ends with the process. */
export function sharedPostgres(): Promise<PostgresServer> {
  running ??= startPostgres()
  return running
}

let template: Promise<string> | undefined

/** A database with the newest schema and no rows: a copy, which takes less time than to migrate each one. */
export async function newMigratedDatabase(): Promise<string> {
  template ??= migrateTemplate()
  return (await sharedPostgres()).newDatabase(await template)
}

async function migrateTemplate(): Promise<string> {
  const url = await (await sharedPostgres()).newDatabase()
  await (await SqlMetadataStore.open(new PostgresDatabase({ ...limits, url }))).close()
  return new URL(url).pathname.slice(1)
}

type Settings = Readonly<Record<string, string>>

/** What a server with this data folder has to be told. */
export async function storeSettings(dataDir: string): Promise<Settings> {
  return { ...(await metadataSettings(dataDir)), ...(await blobSettings()) }
}

async function blobSettings(): Promise<Settings> {
  if (process.env['TEST_BLOBS'] !== 's3') return {}
  return s3Variables(await sharedS3(), freshPrefix())
}

/** The settings of a server whose blobs are on this S3 server. */
export function s3Variables(server: Omit<S3Server, 'stop' | 'name' | 'version'>, prefix: string): Settings {
  return {
    BERTH_STORAGE__S3__BUCKET: server.bucket,
    BERTH_STORAGE__S3__ENDPOINT: server.url,
    BERTH_STORAGE__S3__REGION: server.region,
    BERTH_STORAGE__S3__PREFIX: prefix,
    BERTH_STORAGE__S3__PATH_STYLE: String(server.isPathStyle),
    BERTH_STORAGE__S3__ACCESS_KEY_ID: server.accessKey,
    BERTH_STORAGE__S3__SECRET_ACCESS_KEY: server.secretKey,
  }
}

async function metadataSettings(dataDir: string): Promise<Settings> {
  if (process.env['TEST_METADATA'] !== 'postgres') return {}
  const url = await newMigratedDatabase()
  urls.set(dataDir, url)
  return { BERTH_METADATA__URL: url, BERTH_METADATA__CONNECTIONS: '6' }
}

/** The metadata of the server with this data folder, opened beside it. */
export function openMetadataOf(dataDir: string): Promise<SqlMetadataStore> {
  const url = urls.get(dataDir)
  return SqlMetadataStore.open(
    url === undefined ? new SqliteDatabase(join(dataDir, 'metadata.sqlite')) : new PostgresDatabase({ url, ...limits }),
  )
}

export const limits = { connectionsMax: 4, queueMax: 1_000, statementTimeoutMs: 20_000, lockTimeoutMs: 10_000 }
