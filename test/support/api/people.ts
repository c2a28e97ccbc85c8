// Users beside the administrator, written into the metadata store as an operator's command would write them.
import { hashApiKey } from '../../../src/identity/api-key-secrets.ts'
import type { KeyLimits } from '../../../src/ports/api-keys.ts'
import { openMetadataOf } from '../stores/test-stores.ts'
import { type ApiServer, identity } from './api-server.ts'

export interface NewPerson {
  readonly name: string
  readonly roles: readonly string[]
  /** Another tenant; without it the administrator's. */
  readonly account?: string
  /** What the person's key is limited to. */
  readonly limits?: Partial<KeyLimits>
}

/** Gives the person's API key. */
export async function addPerson(server: ApiServer, { name, roles, account, limits }: NewPerson): Promise<string> {
  const own = (await server.ask('GET', `${identity}/me`)).json<{ account: string }>().account
  const key = `berth_person_${name}_0123456789abcdef`
  const store = await openMetadataOf(server.dataDir)
  try {
    const known = await store.users.find(name)
    const added = await store.users.add({
      name,
      roles,
      account: account ?? own,
      passwordHash: undefined,
      isDisabled: false,
    })
    const user = known ?? added
    if (user === undefined) throw new Error(`${name} could not be added`)
    if (known !== undefined) await store.users.change(known.id, { roles })
    await store.apiKeys.add({
      userId: user.id,
      name: 'test',
      secretHash: hashApiKey(key),
      expiresAt: undefined,
      rights: undefined,
      repositories: undefined,
      ...limits,
    })
  } finally {
    await store.close()
  }
  return key
}
