// What the SQL tables promise too (metadata-store.test.ts), for the stand-ins that other tests use.
import { MemoryApiKeys, MemoryUsers } from '../support/identity/memory-users.ts'
import { apiKeysContract } from './api-keys.ts'
import { usersContract } from './users.ts'

usersContract('memory', async () => new MemoryUsers())

apiKeysContract('memory', async () => {
  const users = new MemoryUsers()
  return { users, apiKeys: new MemoryApiKeys(users) }
})
