// The contract of what manifests name: entries hold what they point to, and may wait for what is not here yet.
import { expect, test } from 'bun:test'
import { digestOf } from '../support/basics/generated-bytes.ts'
import { outcomeOf } from '../support/basics/outcomes.ts'
import { addBlob, addManifest, openShelf } from '../support/stores/metadata-rows.ts'
import type { OpenMetadataStore } from './metadata-store.ts'

export function manifestEntriesContract(open: OpenMetadataStore): void {
  holding(open)
  waiting(open)
}

function holding(open: OpenMetadataStore): void {
  test('tell the blobs of a manifest in id order, each once', async () => {
    const shelf = await openShelf(await open())
    const blobs = [await addBlob(shelf, 'c'), await addBlob(shelf, 'a'), await addBlob(shelf, 'b')]
    const child = await addManifest(shelf, 'child')
    const { id } = await addManifest(shelf, 'one', { blobs: blobs.toReversed(), children: [child], waiting: ['d'] })

    const listed = await shelf.metadata.transaction((tables) => tables.manifests.listBlobs(shelf.repository, id))

    expect(listed).toEqual(blobs.map((blob) => blob.id))
  })

  test('make a blob used in their repository and in no other', async () => {
    const shelf = await openShelf(await open())
    const other = await openShelf(shelf.metadata, 'acme', 'other')
    const blob = await addBlob(shelf, 'layer')
    await shelf.metadata.transaction((tables) => tables.blobs.link(other.repository, blob.id, blob.digest))
    const isUsed = () =>
      shelf.metadata.transaction(async ({ blobs }) => [
        await blobs.isUsed(shelf.repository, blob.id),
        await blobs.isUsed(other.repository, blob.id),
      ])

    expect(await isUsed()).toEqual([false, false])
    const { id } = await addManifest(shelf, 'one', { blobs: [blob] })
    expect(await isUsed()).toEqual([true, false])
    await shelf.metadata.transaction((tables) => tables.manifests.remove(shelf.repository, id))
    expect(await isUsed()).toEqual([false, false])
  })

  test('keep the link of the blob that they name', async () => {
    const shelf = await openShelf(await open())
    const blob = await addBlob(shelf, 'layer')
    await addManifest(shelf, 'one', { blobs: [blob] })

    const unlinking = shelf.metadata.transaction((tables) => tables.blobs.unlink(shelf.repository, blob.id))

    expect(await outcomeOf(unlinking)).toBe('refused')
    expect(await shelf.metadata.blobs.find(shelf.scope, blob.digest)).toBeDefined()
  })

  test('cannot name a blob that only another repository links', async () => {
    const shelf = await openShelf(await open())
    const blob = await addBlob(await openShelf(shelf.metadata, 'acme', 'other'), 'layer')

    expect(await outcomeOf(addManifest(shelf, 'one', { blobs: [blob] }))).toBe('refused')
    expect(await shelf.metadata.manifests.describe(shelf.scope, { digest: digestOf('one') })).toBeUndefined()
  })

  test('cannot name a blob or a manifest that is not there', async () => {
    const shelf = await openShelf(await open())
    const nothing = { id: 999_999, digest: digestOf('nothing') }

    expect(await outcomeOf(addManifest(shelf, 'one', { children: [nothing] }))).toBe('refused')
    expect(await outcomeOf(addManifest(shelf, 'one', { blobs: [{ ...nothing, key: '' as never }] }))).toBe('refused')
  })

  test('tell whether an index lists a manifest, until they are detached', async () => {
    const shelf = await openShelf(await open())
    const { metadata, repository } = shelf
    const child = await addManifest(shelf, 'child')
    const isListed = () => metadata.transaction((tables) => tables.manifests.isListed(repository, child.id))

    expect(await isListed()).toBe(false)
    await addManifest(shelf, 'index', { children: [child] })
    expect(await isListed()).toBe(true)
    await metadata.transaction(async ({ manifests }) => {
      await manifests.detachFromIndexes(repository, child.id)
      await manifests.remove(repository, child.id)
    })
    expect(await metadata.manifests.describe(shelf.scope, { digest: child.digest })).toBeUndefined()

    const again = await addManifest(shelf, 'child')
    expect(await metadata.transaction((tables) => tables.manifests.isListed(repository, again.id))).toBe(true)
  })

  test('are stored once, though a manifest is pushed twice', async () => {
    const shelf = await openShelf(await open())
    const blob = await addBlob(shelf, 'layer')
    await addManifest(shelf, 'one', { blobs: [blob] })

    const { id } = await addManifest(shelf, 'one', { blobs: [blob] })

    expect(await shelf.metadata.transaction((tables) => tables.manifests.listBlobs(shelf.repository, id))).toEqual([
      blob.id,
    ])
  })

  test('may be ten thousand', async () => {
    const shelf = await openShelf(await open())
    const blob = await addBlob(shelf, 'layer')
    const missing = Array.from({ length: 10_000 }, (_, index) => `missing ${index}`)

    const { id } = await addManifest(shelf, 'one', { blobs: [blob], waiting: missing })

    expect(await shelf.metadata.transaction((tables) => tables.manifests.listBlobs(shelf.repository, id))).toEqual([
      blob.id,
    ])
  })
}

function waiting(open: OpenMetadataStore): void {
  test('that wait for a blob point to it as soon as it is linked', async () => {
    const shelf = await openShelf(await open())
    const { id } = await addManifest(shelf, 'sparse', { waiting: ['layer'] })
    expect(await shelf.metadata.transaction((tables) => tables.manifests.listBlobs(shelf.repository, id))).toEqual([])

    const blob = await addBlob(shelf, 'layer')

    expect(await shelf.metadata.transaction((tables) => tables.manifests.listBlobs(shelf.repository, id))).toEqual([
      blob.id,
    ])
    expect(await shelf.metadata.transaction((tables) => tables.blobs.isUsed(shelf.repository, blob.id))).toBe(true)
  })

  test('that wait for a blob do not take one that another repository links', async () => {
    const shelf = await openShelf(await open())
    const { id } = await addManifest(shelf, 'sparse', { waiting: ['layer'] })

    await addBlob(await openShelf(shelf.metadata, 'acme', 'other'), 'layer')

    expect(await shelf.metadata.transaction((tables) => tables.manifests.listBlobs(shelf.repository, id))).toEqual([])
  })

  test('that wait for a manifest point to it as soon as it is stored', async () => {
    const shelf = await openShelf(await open())
    await addManifest(shelf, 'index', { waiting: ['child'] })

    const child = await addManifest(shelf, 'child')

    expect(await shelf.metadata.transaction((tables) => tables.manifests.isListed(shelf.repository, child.id))).toBe(
      true,
    )
    expect(
      await outcomeOf(shelf.metadata.transaction((tables) => tables.manifests.remove(shelf.repository, child.id))),
    ).toBe('refused')
  })

  test('that wait are filled by pushing their manifest again', async () => {
    const shelf = await openShelf(await open())
    const { metadata, repository } = shelf
    await addManifest(shelf, 'sparse', { waiting: ['layer'] })
    const blob = await addBlob(shelf, 'layer')

    const { id } = await addManifest(shelf, 'sparse', { blobs: [blob] })

    expect(await metadata.transaction((tables) => tables.manifests.listBlobs(repository, id))).toEqual([blob.id])
  })

  test('that point to a blob do not turn to a manifest of the same digest', async () => {
    const shelf = await openShelf(await open())
    const { metadata, repository } = shelf
    const blob = await addBlob(shelf, 'both')
    const { id } = await addManifest(shelf, 'index', { blobs: [blob] })

    const twin = await addManifest(shelf, 'both')

    expect(await metadata.transaction((tables) => tables.manifests.listBlobs(repository, id))).toEqual([blob.id])
    expect(await metadata.transaction((tables) => tables.manifests.isListed(repository, twin.id))).toBe(false)
  })
}
