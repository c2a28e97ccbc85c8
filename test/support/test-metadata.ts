// Which engine the servers of the tests keep their metadata in: SQLite, or a PostgreSQL of the tests' own where
// TEST_METADATA=postgres says so.
import { join } from 'node:path'
import { PostgresDatabase } from '../../src/adapters/metadata-sql/postgres-database.ts'
import { SqlMetadataStore } from '../../src/adapters/metadata-sql/sql-metadata-store.ts'
import { SqliteDatabase } from '../../src/adapters/metadata-sql/sqlite-database.ts'
import { type PostgresServer, startPostgres } from './postgres-server.ts'

const urls = new Map<string, string>()
let running: Promise<PostgresServer> | undefined

/** One for the whole run: it ends with the process. */
export function sharedPostgres(): Promise<PostgresServer> {
  running ??= startPostgres()
  return running
}

/** What a server with this data folder has to be told. */
export async function metadataSettings(dataDir: string): Promise<Readonly<Record<string, string>>> {
  if (process.env['TEST_METADATA'] !== 'postgres') return {}
  const url = await (await sharedPostgres()).newDatabase()
  urls.set(dataDir, url)
  return { BERTH_METADATA__URL: url, BERTH_METADATA__CONNECTIONS: '4' }
}

/** The metadata of the server with this data folder, opened beside it. */
export function openMetadataOf(dataDir: string): Promise<SqlMetadataStore> {
  const url = urls.get(dataDir)
  return SqlMetadataStore.open(
    url === undefined ? new SqliteDatabase(join(dataDir, 'metadata.sqlite')) : new PostgresDatabase({ url, ...limits }),
  )
}

export const limits = { connectionsMax: 4, queueMax: 1_000, statementTimeoutMs: 20_000, lockTimeoutMs: 10_000 }
