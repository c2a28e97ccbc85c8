// Users beside the administrator, written into the metadata store as an operator's command would write them.
import { join } from 'node:path'
import { SqlMetadataStore } from '../../src/adapters/metadata-sql/sql-metadata-store.ts'
import { SqliteDatabase } from '../../src/adapters/metadata-sql/sqlite-database.ts'
import { hashApiKey } from '../../src/identity/api-keys.ts'
import { type ApiServer, identity } from './api-server.ts'

export interface NewPerson {
  readonly name: string
  readonly roles: readonly string[]
  /** Another tenant; without it the administrator's. */
  readonly account?: string
}

/** Gives the person's API key. */
export async function addPerson(server: ApiServer, { name, roles, account }: NewPerson): Promise<string> {
  const own = (await server.ask('GET', `${identity}/me`)).json<{ account: string }>().account
  const key = `berth_person_${name}_0123456789abcdef`
  const store = await SqlMetadataStore.open(new SqliteDatabase(join(server.dataDir, 'metadata.sqlite')))
  try {
    const user = await store.users.saveUser({
      name,
      roles,
      account: account ?? own,
      passwordHash: undefined,
      isDisabled: false,
    })
    await store.users.saveApiKey(user.id, 'test', hashApiKey(key), undefined)
  } finally {
    await store.close()
  }
  return key
}
