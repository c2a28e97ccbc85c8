// The contract of tags.
import { expect, test } from 'bun:test'
import { outcomeOf } from '../support/basics/outcomes.ts'
import { addManifest, openShelf, tagChange, tagged } from '../support/stores/metadata-rows.ts'
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
        await metadata.transaction((tables) => tables.tags.point(repository, tagged('latest'), id, tagChange))
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

  test('are removed alone or with all of their manifest, and only in their repository', async () => {
    const shelf = await openShelf(await open())
    const { metadata, scope, repository } = shelf
    const other = await openShelf(metadata, 'acme', 'other')
    const { id, digest } = await addManifest(shelf, 'one', { tag: 'a' })
    for (const tag of ['b', 'c']) await addManifest(shelf, 'one', { tag })
    await addManifest(shelf, 'two', { tag: 'd' })
    const list = (of: typeof repository) => metadata.tags.list(of, undefined, undefined)

    expect(await metadata.tags.remove(other.scope, tagged('a'), tagChange)).toBe(false)
    expect(await list(other.repository)).toEqual([])
    expect(await metadata.tags.remove(scope, tagged('a'), tagChange)).toBe(true)
    expect(await metadata.tags.remove(scope, tagged('a'), tagChange)).toBe(false)
    expect(await metadata.manifests.find(scope, { tag: tagged('a') })).toBeUndefined()
    expect(await metadata.manifests.find(scope, { digest })).toBeDefined()
    expect(await list(repository)).toEqual(['b', 'c', 'd'].map(tagged))
    await metadata.transaction((tables) => tables.tags.removeAllOf(repository, id, tagChange))
    expect(await list(repository)).toEqual([tagged('d')])
  })

  test('cannot point to a manifest that is not there', async () => {
    const { metadata, repository } = await openShelf(await open())

    expect(await outcomeOf(metadata.tags.point(repository, tagged('latest'), 999_999, tagChange))).toBe('refused')
  })
}
