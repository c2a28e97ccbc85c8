// What must hold of the users of one account when several requests change them at once.
import { expect, test } from 'bun:test'
import { defaultRoles } from '../../src/identity/rights.ts'
import { addUser, changeUser, parseUserName } from '../../src/identity/users.ts'
import { RegistryRefusal } from '../../src/oci/errors.ts'
import type { MetadataStore } from '../../src/ports/metadata-store.ts'
import type { OpenMetadataStore } from './metadata-store.ts'

async function told(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => 'done',
    (error) => (error instanceof RegistryRefusal ? error.refusal : String(error)),
  )
}

export function usersAtOnceContract(open: OpenMetadataStore): void {
  const add = (metadata: MetadataStore, name: string, roles: readonly string[], account: string, max?: number) =>
    addUser({ metadata }, { name: parseUserName(name), account, roles, password: undefined }, max)

  test('two operators that remove the right to operate from each other do not both succeed', async () => {
    const metadata = await open()
    const needs = { metadata, roles: defaultRoles }
    await add(metadata, 'oldest', ['reader'], 'acme')
    for (const name of ['one', 'two']) await add(metadata, name, ['admin'], 'acme')
    await add(metadata, 'other', ['admin'], 'rival')
    let other = Promise.resolve('')

    await metadata.transaction(async ({ users }) => {
      await users.lockAccount('acme')
      other = told(changeUser(needs, 'two', { isDisabled: true }))
      // Long enough for a change that does not wait.
      for (let turn = 0; turn < 20; turn += 1) await users.find('one').then(() => Bun.sleep(5))
      await users.change((await users.findLocked('one'))?.id ?? 0, { roles: ['writer'] })
    })

    expect(await other).toBe('last-operator')
    expect(await metadata.users.find('two')).toMatchObject({ roles: ['admin'], isDisabled: false })
  })

  test('many that are created at once are no more than the account may have', async () => {
    const metadata = await open()
    await add(metadata, 'first', ['admin'], 'acme')
    await add(metadata, 'other', ['admin'], 'rival')

    const outcomes = await Promise.all(
      Array.from({ length: 12 }, (_, number) => told(add(metadata, `user-${number}`, [], 'acme', 5))),
    )

    expect(outcomes.filter((outcome) => outcome === 'done')).toHaveLength(4)
    expect(outcomes.filter((outcome) => outcome === 'too-many-users')).toHaveLength(8)
    expect(await metadata.users.count('acme')).toBe(5)
  })
}
