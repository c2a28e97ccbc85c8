import { afterAll } from 'bun:test'
import { join } from 'node:path'
import { SqlMetadataStore } from '../../src/adapters/metadata-sql/sql-metadata-store.ts'
import { SqliteDatabase } from '../../src/adapters/metadata-sql/sqlite-database.ts'
import { useTemporaryFolders } from '../support/temporary-folders.ts'
import { userStoreContract } from './user-store.ts'

const temporaryFolder = useTemporaryFolders('users')
const opened: SqlMetadataStore[] = []

afterAll(async () => {
  for (const metadata of opened) await metadata.close()
})

userStoreContract('SQLite', async () => {
  const metadata = await SqlMetadataStore.open(new SqliteDatabase(join(temporaryFolder(), 'metadata.sqlite')))
  opened.push(metadata)
  return metadata.users
})
