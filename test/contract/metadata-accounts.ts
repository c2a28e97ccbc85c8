// The contracts of accounts and of repositories.
import { expect, test } from 'bun:test'
import { named, openShelf } from '../support/metadata-rows.ts'
import { outcomeOf } from '../support/outcomes.ts'
import type { OpenMetadataStore } from './metadata-store.ts'

export function accountsContract(open: OpenMetadataStore): void {
  test('are made enabled, without images, by their first use', async () => {
    const { accounts } = await open()

    const made = await accounts.ensure('acme')

    expect(made).toMatchObject({ name: 'acme', state: 'enabled', imageCount: 0 })
    expect(await accounts.find('acme')).toEqual(made)
    expect(await accounts.ensure('acme')).toEqual(made)
  })

  test('have no row before their first use', async () => {
    const { accounts } = await open()

    expect(await accounts.find('acme')).toBeUndefined()
  })

  test('that are disabled are not enabled by being used', async () => {
    const { accounts } = await open()
    await accounts.setState('acme', 'disabled')

    expect((await accounts.ensure('acme')).state).toBe('disabled')
  })

  test('change their state as often as they are told, and stay themselves', async () => {
    const { accounts } = await open()
    const { id } = await accounts.ensure('acme')

    for (const state of ['disabled', 'disabled', 'enabled', 'enabled', 'disabled'] as const) {
      await accounts.setState('acme', state)
      expect(await accounts.find('acme')).toMatchObject({ id, state })
    }
  })

  test('are made by setting their state', async () => {
    const { accounts } = await open()

    await accounts.setState('on', 'enabled')
    await accounts.setState('off', 'disabled')

    expect((await accounts.find('on'))?.state).toBe('enabled')
    expect((await accounts.find('off'))?.state).toBe('disabled')
  })

  test('are found by their number within a transaction', async () => {
    const metadata = await open()
    const account = await metadata.accounts.ensure('acme')

    expect(await metadata.transaction((tables) => tables.accounts.findLocked(account.id))).toEqual(account)
    expect(await metadata.transaction((tables) => tables.accounts.findLocked(account.id + 1))).toBeUndefined()
  })

  test('count their images, never below none', async () => {
    const { accounts } = await open()
    const { id } = await accounts.ensure('acme')

    await accounts.addImages(id, 1)
    await accounts.addImages(id, 1)
    await accounts.addImages(id, -1)
    expect((await accounts.find('acme'))?.imageCount).toBe(1)
    await accounts.addImages(id, -1)

    expect(await outcomeOf(accounts.addImages(id, -1))).toBe('refused')
    expect((await accounts.find('acme'))?.imageCount).toBe(0)
  })

  test('made by many at once are one', async () => {
    const { accounts } = await open()

    const made = await Promise.all(Array.from({ length: 10 }, () => accounts.ensure('acme')))

    expect(new Set(made.map((account) => account.id)).size).toBe(1)
  })
}

export function repositoriesContract(open: OpenMetadataStore): void {
  test('are made by their first use and found after it', async () => {
    const metadata = await open()
    const { id: accountId } = await metadata.accounts.ensure('acme')
    const scope = { accountId, repository: named('team/app') }

    expect(await metadata.repositories.find(scope)).toBeUndefined()
    const made = await metadata.repositories.ensure(scope)

    expect(made.accountId).toBe(accountId)
    expect(await metadata.repositories.find(scope)).toEqual(made)
    expect(await metadata.repositories.ensure(scope)).toEqual(made)
  })

  test('made by many at once are one', async () => {
    const { metadata, scope } = await openShelf(await open())
    const fresh = { ...scope, repository: named('fresh') }

    const made = await Promise.all(Array.from({ length: 10 }, () => metadata.repositories.ensure(fresh)))

    expect(new Set(made.map((repository) => repository.id)).size).toBe(1)
  })

  test('cannot belong to an account that is not there', async () => {
    const metadata = await open()

    const making = metadata.repositories.ensure({ accountId: 999_999, repository: named('app') })

    expect(await outcomeOf(making)).toBe('refused')
  })

  test('count their manifests and tell the new number', async () => {
    const { metadata, repository } = await openShelf(await open())

    expect(await metadata.repositories.addManifests(repository, 1)).toBe(1)
    expect(await metadata.repositories.addManifests(repository, 1)).toBe(2)
    expect(await metadata.repositories.addManifests(repository, -1)).toBe(1)
    expect(await metadata.repositories.addManifests(repository, -1)).toBe(0)
    expect(await outcomeOf(metadata.repositories.addManifests(repository, -1))).toBe('refused')
  })

  test('are listed while they have a manifest', async () => {
    const { metadata, repository, accountId } = await openShelf(await open())

    expect(await metadata.repositories.list(accountId, undefined, 10)).toEqual([])
    await metadata.repositories.addManifests(repository, 1)
    expect(await metadata.repositories.list(accountId, undefined, 10)).toEqual([named('app')])
    await metadata.repositories.addManifests(repository, -1)
    expect(await metadata.repositories.list(accountId, undefined, 10)).toEqual([])
  })

  test('are listed in byte order, page by page', async () => {
    const metadata = await open()
    // Byte order, not the order of a language: a dash before a digit, a digit before a letter, a slash before both.
    const names = ['a', 'a-b', 'a.b', 'a/b', 'a0', 'a_b', 'ab', 'b', 'b--c', 'z9']
    for (const name of names.toReversed()) {
      const { repository } = await openShelf(metadata, 'acme', name)
      await metadata.repositories.addManifests(repository, 1)
    }
    const { accountId } = await openShelf(metadata)

    const all = await metadata.repositories.list(accountId, undefined, 100)
    expect(all.map(String)).toEqual(names)
    expect(await metadata.repositories.list(accountId, 'a.b', 3)).toEqual(['a/b', 'a0', 'a_b'].map(named))
    expect(await metadata.repositories.list(accountId, 'a!', 2)).toEqual(['a-b', 'a.b'].map(named))
    expect(await metadata.repositories.list(accountId, 'z9', 10)).toEqual([])
  })
}
