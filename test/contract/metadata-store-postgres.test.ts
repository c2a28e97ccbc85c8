import { afterEach } from 'bun:test'
import { PostgresDatabase } from '../../src/adapters/metadata-sql/postgres-database.ts'
import { SqlMetadataStore } from '../../src/adapters/metadata-sql/sql-metadata-store.ts'
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

metadataStoreContract('PostgreSQL', openPostgres)
