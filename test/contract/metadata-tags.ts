// The contract of tags.
import { expect, test } from 'bun:test'
import { outcomeOf } from '../support/basics/outcomes.ts'
import { addManifest, openShelf, tagged } from '../support/stores/metadata-rows.ts'
import type { OpenMetadataStore } from './metadata-store.ts'

export function tagsContract(open: OpenMetadataStore): void {
  test('point to a manifest and move to another', async () => {
    const shelf = await openShelf(await open())
    const { metadata, scope } = shelf
    const one = await addManifest(shelf, 'one', { tag: 'latest' })
    expect((await metadata.manifests.describe(scope, { tag: tagged('latest') }))?.digest).toBe(one.digest)

    const two = await addManifest(shelf, 'two', { tag: 'latest' })

    expect((await metadata.manifests.describe(scope, { tag: tagged('latest') }))?.digest).toBe(two.digest)
    expect(await metadata.manifests.describe(scope, { digest: one.digest })).toBeDefined()
    expect(await metadata.tags.list(shelf.repository, undefined, undefined)).toEqual([tagged('latest')])
  })

  test('show a concurrent reader the old or the new manifest, never none', async () => {
    const shelf = await openShelf(await open())
    const { metadata, scope, repository } = shelf
    const manifests = [await addManifest(shelf, 'one', { tag: 'latest' }), await addManifest(shelf, 'two')]
    const digests = new Set<string | undefined>(manifests.map((manifest) => manifest.digest))
    let isMoving = true
    const move = async () => {
      for (let turn = 0; turn < 100; turn += 1) {
        const id = manifests[turn % 2]?.id ?? 0
        await metadata.transaction((tables) => tables.tags.point(repository, tagged('latest'), id))
      }
      isMoving = false
    }
    const seen = new Set<string | undefined>()
    const look = async () => {
      while (isMoving) {
        seen.add((await metadata.manifests.find(scope, { tag: tagged('latest') }))?.digest)
        await Bun.sleep(0)
      }
    }

    await Promise.all([move(), look(), look()])

    expect([...seen].filter((digest) => !digests.has(digest))).toEqual([])
  })

  test('are listed in byte order, page by page or all at once', async () => {
    const shelf = await openShelf(await open())
    const names = ['0.9', '1.10', '1.2', 'B', 'Z', '_', 'a', 'a-1', 'a.1', 'a_1', 'b']
    for (const name of names.toReversed()) await addManifest(shelf, 'one', { tag: name })
    const { tags } = shelf.metadata

    expect((await tags.list(shelf.repository, undefined, undefined)).map(String)).toEqual(names)
    expect(await tags.list(shelf.repository, '1.2', 3)).toEqual(['B', 'Z', '_'].map(tagged))
    expect(await tags.list(shelf.repository, 'Zz', undefined)).toEqual(names.slice(5).map(tagged))
    expect(await tags.list(shelf.repository, 'b', 5)).toEqual([])
  })

  test('are removed alone, and only once', async () => {
    const shelf = await openShelf(await open())
    const { digest } = await addManifest(shelf, 'one', { tag: 'latest' })
    const { metadata, scope } = shelf

    expect(await metadata.tags.remove(scope, tagged('latest'))).toBe(true)
    expect(await metadata.tags.remove(scope, tagged('latest'))).toBe(false)

    expect(await metadata.manifests.find(scope, { tag: tagged('latest') })).toBeUndefined()
    expect(await metadata.manifests.find(scope, { digest })).toBeDefined()
  })

  test('of one repository are not those of another', async () => {
    const shelf = await openShelf(await open())
    const other = await openShelf(shelf.metadata, 'acme', 'other')
    await addManifest(shelf, 'one', { tag: 'latest' })

    expect(await shelf.metadata.tags.remove(other.scope, tagged('latest'))).toBe(false)
    expect(await shelf.metadata.tags.list(other.repository, undefined, undefined)).toEqual([])
    expect(await shelf.metadata.tags.list(shelf.repository, undefined, undefined)).toEqual([tagged('latest')])
  })

  test('of one manifest are removed together, others stay', async () => {
    const shelf = await openShelf(await open())
    const one = await addManifest(shelf, 'one', { tag: 'a' })
    await addManifest(shelf, 'one', { tag: 'b' })
    await addManifest(shelf, 'two', { tag: 'c' })

    await shelf.metadata.transaction((tables) => tables.tags.removeAllOf(shelf.repository, one.id))

    expect(await shelf.metadata.tags.list(shelf.repository, undefined, undefined)).toEqual([tagged('c')])
  })

  test('cannot point to a manifest that is not there', async () => {
    const { metadata, repository } = await openShelf(await open())

    expect(await outcomeOf(metadata.tags.point(repository, tagged('latest'), 999_999))).toBe('refused')
  })
}
