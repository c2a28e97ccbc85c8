import { afterAll } from 'bun:test'
import { join } from 'node:path'
import { SqlMetadataStore } from '../../src/adapters/metadata-sql/sql-metadata-store.ts'
import { SqliteDatabase } from '../../src/adapters/metadata-sql/sqlite-database.ts'
import { MemoryApiKeys, MemoryUsers } from '../support/memory-users.ts'
import { useTemporaryFolders } from '../support/temporary-folders.ts'
import { apiKeysContract } from './api-keys.ts'
import { usersContract } from './users.ts'

const temporaryFolder = useTemporaryFolders('users')
const opened: SqlMetadataStore[] = []

afterAll(async () => {
  for (const metadata of opened) await metadata.close()
})

async function openSqlite(): Promise<SqlMetadataStore> {
  const metadata = await SqlMetadataStore.open(new SqliteDatabase(join(temporaryFolder(), 'metadata.sqlite')))
  opened.push(metadata)
  return metadata
}

usersContract('SQLite', async () => (await openSqlite()).users)
usersContract('memory', async () => new MemoryUsers())

apiKeysContract('SQLite', openSqlite)
apiKeysContract('memory', async () => {
  const users = new MemoryUsers()
  return { users, apiKeys: new MemoryApiKeys(users) }
})
