// A data folder as a first start leaves it, but for its first user.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { SqlMetadataStore } from '../../../src/adapters/metadata-sql/sql-metadata-store.ts'
import { SqliteDatabase } from '../../../src/adapters/metadata-sql/sqlite-database.ts'

export async function layEmptyData(dataDir: string): Promise<void> {
  mkdirSync(dataDir, { recursive: true })
  await (await SqlMetadataStore.open(new SqliteDatabase(join(dataDir, 'metadata.sqlite')))).close()
}
