// The contract of what manifests name: entries hold what they point to, and may wait for what is not here yet.
import { expect, test } from 'bun:test'
import type { RowId } from '../../src/ports/row-id.ts'
import { digestOf } from '../support/basics/generated-bytes.ts'
import { outcomeOf } from '../support/basics/outcomes.ts'
import { addBlob, addManifest, openShelf, type Shelf } from '../support/stores/metadata-rows.ts'
import type { OpenMetadataStore } from './metadata-store.ts'

export function manifestEntriesContract(open: OpenMetadataStore): void {
  holding(open)
  waiting(open)
}

/** The blobs that the entries of a manifest point to. */
function listBlobs({ metadata, repository }: Shelf, id: RowId): Promise<readonly RowId[]> {
  return metadata.transaction(({ manifests }) => manifests.listBlobs(repository, id))
}

function holding(open: OpenMetadataStore): void {
  test('tell the blobs of a manifest in id order, each once, also of ten thousand entries', async () => {
    const shelf = await openShelf(await open())
    const blobs = [await addBlob(shelf, 'c'), await addBlob(shelf, 'a'), await addBlob(shelf, 'b')]
    const children = [await addManifest(shelf, 'child')]
    const waiting = Array.from({ length: 10_000 }, (_, index) => `missing ${index}`)
    const { id } = await addManifest(shelf, 'one', { blobs: blobs.toReversed(), children, waiting })

    expect(await listBlobs(shelf, id)).toEqual(blobs.map((blob) => blob.id))
    await addManifest(shelf, 'one', { blobs })
    expect(await listBlobs(shelf, id)).toEqual(blobs.map((blob) => blob.id))
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

  test('cannot name a blob that only another repository links, or what does not exist', async () => {
    const shelf = await openShelf(await open())
    const elsewhere = await addBlob(await openShelf(shelf.metadata, 'acme', 'other'), 'layer')
    const nothing = { id: 999_999, digest: digestOf('nothing') }

    for (const needs of [{ blobs: [elsewhere] }, { children: [nothing] }, { blobs: [{ ...elsewhere, ...nothing }] }]) {
      expect(await outcomeOf(addManifest(shelf, 'one', needs))).toBe('refused')
    }
    expect(await shelf.metadata.manifests.describe(shelf.scope, { digest: digestOf('one') })).toBeUndefined()
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
}

function waiting(open: OpenMetadataStore): void {
  test('that wait for a blob point to it as soon as their repository links it, or their manifest is pushed again', async () => {
    const shelf = await openShelf(await open())
    const { metadata, repository } = shelf
    const { id } = await addManifest(shelf, 'sparse', { waiting: ['layer', 'second'] })
    await addBlob(await openShelf(metadata, 'acme', 'other'), 'second')
    expect(await listBlobs(shelf, id)).toEqual([])

    const blob = await addBlob(shelf, 'layer')

    expect(await listBlobs(shelf, id)).toEqual([blob.id])
    expect(await metadata.transaction((tables) => tables.blobs.isUsed(repository, blob.id))).toBe(true)
    const third = await addBlob(shelf, 'third')
    await addManifest(shelf, 'sparse', { blobs: [blob, third] })
    expect(await listBlobs(shelf, id)).toEqual([blob.id, third.id])
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

  test('that point to a blob do not turn to a manifest of the same digest', async () => {
    const shelf = await openShelf(await open())
    const { metadata, repository } = shelf
    const blob = await addBlob(shelf, 'both')
    const { id } = await addManifest(shelf, 'index', { blobs: [blob] })

    const twin = await addManifest(shelf, 'both')

    expect(await listBlobs(shelf, id)).toEqual([blob.id])
    expect(await metadata.transaction((tables) => tables.manifests.isListed(repository, twin.id))).toBe(false)
  })
}
