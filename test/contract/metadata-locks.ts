// What happens when two transactions meet at one row. An engine with one writer lets the second begin when the first has
// ended; one with row locks must come to the same end. The second begins while the first is half way.
import { expect, test } from 'bun:test'
import {
  type AddedBlob,
  addBlob,
  addManifest,
  openShelf,
  type Shelf,
  saveManifest,
  tagChange,
  tagged,
} from '../support/stores/metadata-rows.ts'
import type { OpenMetadataStore } from './metadata-store.ts'

/** Long enough for the other to come to the row; if it does not, it comes later, and the test proves less. */
const meanwhile = () => Bun.sleep(50)

/** The steps of a blob's deletion (`registry/blobs.ts`). */
function deleteBlob({ metadata, repository }: Shelf, blob: AddedBlob): Promise<string> {
  return metadata.transaction(async ({ blobs }) => {
    const id = (await blobs.lockByDigests(repository, [blob.digest])).get(blob.digest)?.id
    if (id === undefined) return 'unknown'
    if (await blobs.isUsed(repository, id)) return 'in use'
    await blobs.unlink(repository, id)
    return 'deleted'
  })
}

export function locksContract(open: OpenMetadataStore): void {
  test('a blob that a push has looked up is in use for a deletion that runs meanwhile', async () => {
    const shelf = await openShelf(await open())
    const layer = await addBlob(shelf, 'layer')
    let deleting = Promise.resolve('')

    await shelf.metadata.transaction(async (tables) => {
      await tables.blobs.lockByDigests(shelf.repository, [layer.digest])
      deleting = deleteBlob(shelf, layer)
      await meanwhile()
      await saveManifest(tables, shelf, 'image', { blobs: [layer] })
    })

    expect(await deleting).toBe('in use')
  })

  test('a blob that is deleted by many at once is deleted by one of them', async () => {
    const shelf = await openShelf(await open())
    const layer = await addBlob(shelf, 'layer')

    const outcomes = await Promise.all([1, 2, 3, 4].map(() => deleteBlob(shelf, layer)))

    expect(outcomes.toSorted()).toEqual(['deleted', 'unknown', 'unknown', 'unknown'])
  })

  test('a manifest that is pushed again while it is deleted is new', async () => {
    const shelf = await openShelf(await open())
    const { metadata, repository, scope } = shelf
    const { id, digest } = await addManifest(shelf, 'image', { tag: 'old' })
    let pushing: Promise<unknown> = Promise.resolve()

    await metadata.transaction(async (tables) => {
      await tables.manifests.findLocked(repository, digest)
      pushing = addManifest(shelf, 'image', { tag: 'new' })
      await meanwhile()
      await tables.tags.removeAllOf(repository, id, tagChange)
      await tables.manifests.remove(repository, id)
    })

    expect(await pushing).toMatchObject({ digest, isNew: true })
    expect(await metadata.tags.list(repository, undefined, undefined)).toEqual([tagged('new')])
    expect((await metadata.manifests.find(scope, { digest }))?.sizeBytes).toBe(5)
  })

  test('a repository that is collected while a push to it begins is created again', async () => {
    const shelf = await openShelf(await open())
    const { metadata, scope } = shelf
    let pushing: Promise<unknown> = Promise.resolve()

    const removed = await metadata.transaction(async ({ garbage }) => {
      const { removed: count } = await garbage.removeEmptyRepositories(0, undefined)
      pushing = metadata.transaction(async (tables) => {
        const repository = await tables.repositories.ensure(scope)
        await saveManifest(tables, { ...shelf, repository }, 'image', { tag: 'latest' })
      })
      await meanwhile()
      return count
    })
    await pushing

    expect(removed).toBe(1)
    expect((await metadata.manifests.describe(scope, { tag: tagged('latest') }))?.sizeBytes).toBe(5)
  })
}
