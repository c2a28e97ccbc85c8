import { afterEach } from 'bun:test'
import { PostgresDatabase } from '../../src/adapters/metadata-sql/postgres-database.ts'
import { SqlMetadataStore } from '../../src/adapters/metadata-sql/sql-metadata-store.ts'
import { testNeeding } from '../support/needs.ts'
import { postgres } from '../support/postgres-server.ts'
import { limits, sharedPostgres } from '../support/test-metadata.ts'
import { metadataStoreContract } from './metadata-store.ts'

const opened: SqlMetadataStore[] = []

afterEach(async () => {
  for (const metadata of opened.splice(0)) await metadata.close()
})

async function openPostgres(): Promise<SqlMetadataStore> {
  const url = await (await sharedPostgres()).newDatabase()
  const metadata = await SqlMetadataStore.open(new PostgresDatabase({ ...limits, url }))
  opened.push(metadata)
  return metadata
}

// Where there is none, one loud skip stands for all of it, and in CI a failure.
if (postgres.isMet) metadataStoreContract('PostgreSQL', openPostgres)
else testNeeding(postgres, 'metadata store, PostgreSQL', async () => {})
