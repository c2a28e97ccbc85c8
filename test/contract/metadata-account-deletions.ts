// The contract of the deletion of accounts. test/contract/account-deletions.test.ts compares all rows of all tables.
import { expect, test } from 'bun:test'
import { continueAccountDeletions, requestAccountDeletion } from '../../src/registry/account-deletion.ts'
import { addManifest, hourMs, openShelf } from '../support/stores/metadata-rows.ts'
import type { OpenMetadataStore } from './metadata-store.ts'

const nobody = { hasUsers: false }

export function accountDeletionsContract(open: OpenMetadataStore): void {
  test('need an account that is not enabled, keep it suspended, and free its name after the given time', async () => {
    const { metadata, accountId } = await openShelf(await open())
    expect(await requestAccountDeletion({ metadata }, 'acme', nobody)).toBe('enabled')
    expect(await requestAccountDeletion({ metadata }, 'unknown', nobody)).toBe('unknown')
    expect(await metadata.accountDeletions.request(accountId)).toBe(false)
    await metadata.accounts.setState('acme', 'disabled')
    for (let times = 0; times < 2; times += 1) {
      expect(await requestAccountDeletion({ metadata }, 'acme', nobody)).toBe('requested')
    }
    await metadata.accounts.setState('acme', 'enabled')
    expect([(await metadata.accounts.resume('acme'))?.state, (await metadata.accounts.find('acme'))?.state]).toEqual([
      'suspended',
      'suspended',
    ])

    expect((await continueAccountDeletions({ metadata }, hourMs)).accounts).toBe(0)
    expect((await metadata.accounts.find('acme'))?.state).toBe('suspended')
    await metadata.marks.set('read-only', 'moved')
    expect((await continueAccountDeletions({ metadata }, 0)).accounts).toBe(0)
    await metadata.marks.remove('read-only')
    expect(await continueAccountDeletions({ metadata }, 0)).toEqual({ rows: 0, accounts: 1 })
    expect(await metadata.accounts.find('acme')).toBeUndefined()
    expect((await metadata.accounts.ensure('acme')).state).toBe('enabled')
  })

  test('go on where they were stopped, in portions, and delete an account that has only users', async () => {
    const shelf = await openShelf(await open())
    const { metadata, repository, accountId } = shelf
    for (let at = 0; at < 450; at += 1) await addManifest(shelf, `image ${at}`, { tag: `t${at}` })
    const user = { name: 'ann', passwordHash: undefined, roles: [], account: 'lone', isDisabled: false }
    await metadata.users.add(user)
    await metadata.accounts.suspend('acme')
    for (const name of ['acme', 'lone']) {
      expect(await requestAccountDeletion({ metadata }, name, { hasUsers: name === 'lone' })).toBe('requested')
    }
    let steps = 0
    const stopSoon = () => {
      steps += 1
      return steps > 4
    }
    const first = await continueAccountDeletions({ metadata }, 0, stopSoon)
    expect([first.accounts, first.rows < 450 * 2]).toEqual([0, true])
    const left = await metadata.accounts.measure(accountId)
    expect([left.repositories, left.manifests > 0]).toEqual([1, true])

    const second = await continueAccountDeletions({ metadata }, 0)
    expect(second.accounts).toBe(2)
    expect(await metadata.users.find('ann')).toBeUndefined()
    expect(await metadata.tags.list(repository, undefined, undefined)).toEqual([])
  })
}
