// The contract of transactions: all or nothing, unseen until the end, one after the other.
import { expect, test } from 'bun:test'
import { addManifest, openShelf, saveManifest, tagChange, tagged } from '../support/stores/metadata-rows.ts'
import type { OpenMetadataStore } from './metadata-store.ts'

class ChangedOurMind extends Error {}

export function transactionsContract(open: OpenMetadataStore): void {
  test('give what their work gives, and see their own writes', async () => {
    const shelf = await openShelf(await open())

    const found = await shelf.metadata.transaction(async (tables) => {
      await saveManifest(tables, shelf, 'one', { tag: 'latest' })
      return tables.manifests.describe(shelf.scope, { tag: tagged('latest') })
    })

    expect(found?.sizeBytes).toBe(3)
  })

  test('leave nothing behind when their work fails', async () => {
    const shelf = await openShelf(await open())
    const { metadata, scope, repository, accountId } = shelf

    const work = metadata.transaction(async (tables) => {
      await saveManifest(tables, shelf, 'one', { tag: 'latest', waiting: ['a layer'] })
      await tables.repositories.markAsImage(repository)
      throw new ChangedOurMind()
    })

    expect(await work.catch((error: unknown) => error)).toBeInstanceOf(ChangedOurMind)
    expect(await metadata.manifests.find(scope, { tag: tagged('latest') })).toBeUndefined()
    expect(await metadata.tags.list(repository, undefined, undefined)).toEqual([])
    expect(await metadata.repositories.list(accountId, undefined, 10)).toEqual([])
    expect((await metadata.usage.findOfAccount(accountId)).images).toBe(0)
  })

  test('leave nothing behind when their work or a statement fails, and do not disturb those behind them', async () => {
    const shelf = await openShelf(await open())

    const outcomes = await Promise.allSettled([
      shelf.metadata.transaction(async (tables) => {
        await saveManifest(tables, shelf, 'one', { tag: 'one' })
        throw new ChangedOurMind()
      }),
      shelf.metadata.transaction(async (tables) => {
        await saveManifest(tables, shelf, 'one', { tag: 'latest' })
        await tables.tags.point(shelf.repository, tagged('broken'), 999_999, tagChange)
      }),
      addManifest(shelf, 'two', { tag: 'two' }),
    ])

    expect(outcomes.map((outcome) => outcome.status)).toEqual(['rejected', 'rejected', 'fulfilled'])
    expect(await shelf.metadata.tags.list(shelf.repository, undefined, undefined)).toEqual([tagged('two')])
  })

  test('are not seen by readers outside before their end, and are seen right after it', async () => {
    const shelf = await openShelf(await open())
    const { metadata, scope, repository } = shelf
    const look = async () => ({
      manifest: (await metadata.manifests.describe(scope, { tag: tagged('latest') }))?.sizeBytes,
      tags: await metadata.tags.list(repository, undefined, undefined),
    })
    await addManifest(shelf, 'one', { tag: 'latest' })

    const during = await metadata.transaction(async (tables) => {
      await saveManifest(tables, shelf, 'number two', { tag: 'latest' })
      await tables.tags.point(repository, tagged('another'), (await saveManifest(tables, shelf, 'three')).id, tagChange)
      return look()
    })

    expect(during).toEqual({ manifest: 3, tags: [tagged('latest')] })
    expect(await look()).toEqual({ manifest: 10, tags: [tagged('another'), tagged('latest')] })
  })

  test('are serialised: of many that read and then write, none loses the change of another', async () => {
    const { metadata, repository } = await openShelf(await open())

    const counts = await Promise.all(
      Array.from({ length: 20 }, () =>
        metadata.transaction(async (tables) => {
          await tables.repositories.lock(repository)
          const before = Number((await tables.marks.find('store-id')) ?? 0)
          await Bun.sleep(0)
          await tables.marks.set('store-id', String(before + 1))
          return before + 1
        }),
      ),
    )

    expect(counts.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, index) => index + 1))
  })

  test('of two that push the same manifest at once, exactly one is the first', async () => {
    const shelf = await openShelf(await open())

    const pushes = await Promise.all([addManifest(shelf, 'one'), addManifest(shelf, 'one'), addManifest(shelf, 'one')])

    expect(pushes.filter((push) => push.isNew)).toHaveLength(1)
    expect(new Set(pushes.map((push) => push.id)).size).toBe(1)
  })
}
