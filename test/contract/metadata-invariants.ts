// What a metadata store guarantees even if a use case has a bug: storage keys, and the separation of accounts.
import { expect, test } from 'bun:test'
import type { StorageKey } from '../../src/ports/blob-store.ts'
import { digestOf } from '../support/basics/generated-bytes.ts'
import { outcomeOf } from '../support/basics/outcomes.ts'
import {
  addBlob,
  addManifest,
  freshUploadId,
  openShelf,
  type Shelf,
  tagChange,
  tagged,
} from '../support/stores/metadata-rows.ts'
import { freshKey } from '../support/stores/stored-objects.ts'
import type { OpenMetadataStore } from './metadata-store.ts'

const places = {
  uploads: ({ metadata, repository }: Shelf, key: StorageKey) =>
    metadata.transaction((tables) => tables.uploads.create(repository, 'alice', freshUploadId(), key, 0)),
  blobs: ({ metadata, accountId }: Shelf, key: StorageKey) =>
    metadata.transaction((tables) => tables.blobs.add(accountId, digestOf(freshKey()), { sizeBytes: 1, key })),
  trash: ({ metadata }: Shelf, storageKey: StorageKey) =>
    metadata.transaction((tables) => tables.garbage.trash({ storageKey, notes: undefined })),
}
type Place = keyof typeof places

export function storageKeysContract(open: OpenMetadataStore): void {
  const names: Place[] = ['uploads', 'blobs', 'trash']

  test.each(names)('one that is in %s already is refused there, and by the trash', async (place) => {
    const shelf = await openShelf(await open())
    const key = freshKey()
    await places[place](shelf, key)

    expect(await outcomeOf(places[place](shelf, key))).toBe('refused')
    // Objects in the trash lose their bytes, so this must hold even if a use case has a bug.
    expect(await outcomeOf(places.trash(shelf, key))).toBe('refused')
    expect(await shelf.metadata.garbage.claimTrashed(0, 0, 10)).toHaveLength(place === 'trash' ? 1 : 0)
  })

  test('one of another account is refused as well', async () => {
    const metadata = await open()
    const { key } = await addBlob(await openShelf(metadata), 'layer')

    expect(await outcomeOf(places.blobs(await openShelf(metadata, 'rival'), key))).toBe('refused')
  })
}

export function isolationContract(open: OpenMetadataStore): void {
  async function openTwo() {
    const metadata = await open()
    return { metadata, mine: await openShelf(metadata), theirs: await openShelf(metadata, 'rival') }
  }

  test('with the same repository, tags and digests, each sees and changes only its own', async () => {
    const { metadata, mine, theirs } = await openTwo()
    for (const shelf of [mine, theirs]) {
      await addManifest(shelf, 'one', { blobs: [await addBlob(shelf, 'layer')], tag: 'latest' })
    }
    const look = async ({ scope, repository }: Shelf) => ({
      manifest: (await metadata.manifests.find(scope, { tag: tagged('latest') }))?.digest,
      tags: await metadata.tags.list(repository, undefined, undefined),
      blob: (await metadata.blobs.find(scope, digestOf('layer')))?.sizeBytes,
    })
    const before = await look(theirs)

    await metadata.transaction(async ({ blobs, manifests, tags }) => {
      const id = await manifests.findLocked(mine.repository, digestOf('one'))
      if (id === undefined) throw new Error('the manifest was there')
      await tags.removeAllOf(mine.repository, id, tagChange)
      const [blobId] = await manifests.listBlobs(mine.repository, id)
      await manifests.remove(mine.repository, id)
      if (blobId !== undefined) await blobs.unlink(mine.repository, blobId)
    })

    expect(await look(mine)).toEqual({ manifest: undefined, tags: [], blob: undefined })
    expect(await look(theirs)).toEqual(before)
  })

  test('one is not told that the other holds a blob, and stores its own under another key', async () => {
    const { metadata, mine, theirs } = await openTwo()
    const { digest, key } = await addBlob(theirs, 'layer')

    expect(await metadata.blobs.listHolders(mine.accountId, digest, 10)).toEqual([])
    expect(await metadata.transaction((tables) => tables.blobs.findLocked(mine.accountId, digest))).toBeUndefined()
    expect(await metadata.repositories.list(mine.accountId, undefined, 10)).toEqual([])
    const own = await addBlob(mine, 'layer')
    expect([own.digest === digest, own.key === key]).toEqual([true, false])
  })

  test('rows of one cannot be joined to rows of the other', async () => {
    const { metadata, mine, theirs } = await openTwo()
    const [blob, manifest] = [await addBlob(theirs, 'layer'), await addManifest(theirs, 'one')]
    const mixed = { accountId: mine.accountId, id: theirs.repository.id }
    const transaction = metadata.transaction.bind(metadata)
    const attempts: Record<string, () => Promise<unknown>> = {
      'a tag of mine to a manifest of theirs': () =>
        metadata.tags.point(mine.repository, tagged('a'), manifest.id, tagChange),
      'a link of mine to a blob of theirs': () =>
        transaction(({ blobs }) => blobs.link(mine.repository, blob.id, blob.digest)),
      'a manifest of mine to a blob of theirs': () => addManifest(mine, 'two', { blobs: [blob] }),
      'an index of mine to a manifest of theirs': () => addManifest(mine, 'three', { children: [manifest] }),
      'an upload of mine in a repository of theirs': () =>
        transaction(({ uploads }) => uploads.create(mixed, 'alice', freshUploadId(), freshKey(), 0)),
      'a manifest of mine in a repository of theirs': () => addManifest({ ...mine, repository: mixed }, 'four'),
    }

    for (const [what, attempt] of Object.entries(attempts)) {
      expect({ what, outcome: await outcomeOf(attempt()) }).toEqual({ what, outcome: 'refused' })
    }
  })

  test('changes with the wrong account change nothing', async () => {
    const { metadata, mine, theirs } = await openTwo()
    const { id, digest } = await addManifest(theirs, 'one', { tag: 'latest' })
    const mixed = { accountId: mine.accountId, id: theirs.repository.id }

    await metadata.transaction(async ({ manifests, tags }) => {
      await tags.removeAllOf(mixed, id, tagChange)
      await manifests.remove(mixed, id)
    })

    expect((await metadata.manifests.find(theirs.scope, { tag: tagged('latest') }))?.digest).toBe(digest)
  })
}
