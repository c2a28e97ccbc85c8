// The contract of what several servers of one store need to know of each other.
import { expect, test } from 'bun:test'
import type { OrphanedObject, StorageKey } from '../../src/ports/blob-store.ts'
import { digestOf } from '../support/basics/generated-bytes.ts'
import { addBlob, freshUploadId, hourMs, openShelf } from '../support/stores/metadata-rows.ts'
import { freshKey } from '../support/stores/stored-objects.ts'
import type { OpenMetadataStore } from './metadata-store.ts'

export function replicasContract(open: OpenMetadataStore): void {
  sharingWork(open)
  findingStrays(open)
}

function sharingWork(open: OpenMetadataStore): void {
  test('of many callers, one gets the turn at work that is done once', async () => {
    const { garbage } = await open()

    const turns = await Promise.all(Array.from({ length: 20 }, () => garbage.claimWork('sweep', hourMs)))

    expect(turns.filter(Boolean)).toHaveLength(1)
    expect(await garbage.claimWork('sweep', hourMs)).toBe(false)
    expect(await garbage.claimWork('whole sweep', hourMs)).toBe(true)
  })

  test('a turn comes again when its time is over', async () => {
    const { garbage } = await open()

    expect(await garbage.claimWork('sweep', 0)).toBe(true)
    expect(await garbage.claimWork('sweep', hourMs)).toBe(true)
    expect(await garbage.claimWork('sweep', 0)).toBe(false)
  })

  test('trash that one has taken is given to no other replica meanwhile, and all trash is taken', async () => {
    const metadata = await open()
    const keys = Array.from({ length: 30 }, freshKey)
    for (const storageKey of keys) {
      await metadata.transaction(({ garbage }) => garbage.trash({ storageKey, notes: undefined }))
    }

    const takes = await Promise.all(Array.from({ length: 6 }, () => metadata.garbage.claimTrashed(0, hourMs, 10)))
    const rest = await metadata.garbage.claimTrashed(0, hourMs, 100)

    const taken = [...takes.flat(), ...rest].map((object) => object.storageKey)
    expect(taken.toSorted()).toEqual(keys.toSorted())
  })

  test('the store tells one time to all', async () => {
    const metadata = await open()

    const [first, second] = [await metadata.now(), await metadata.now()]

    expect(second).toBeGreaterThanOrEqual(first)
    expect(Math.abs(first - Date.now())).toBeLessThan(hourMs)
  })
}

function strayAt(storageKey: StorageKey, openedFor = storageKey): OrphanedObject {
  return { storageKey, openedFor, notes: undefined }
}

function findingStrays(open: OpenMetadataStore): void {
  const derived = (key: StorageKey, letters: string) => `${key}-${letters}` as StorageKey

  test('what no row names goes to the trash; what a blob, an upload or the trash names stays', async () => {
    const shelf = await openShelf(await open())
    const { metadata, repository, owner } = shelf
    const blob = await addBlob(shelf, 'layer')
    const upload = await metadata.transaction(({ uploads }) =>
      uploads.create(repository, owner.subject, freshUploadId(), freshKey(), 0),
    )
    const trashed = freshKey()
    await metadata.transaction(({ garbage }) => garbage.trash({ storageKey: trashed, notes: 'first' }))
    const stray = derived(freshKey(), '00000001')
    const strays = [
      strayAt(blob.key),
      strayAt(upload.storageKey),
      strayAt(derived(upload.storageKey, 'abcdef01'), upload.storageKey),
      strayAt(trashed),
      strayAt(stray, freshKey()),
    ]

    expect(await metadata.transaction(({ garbage }) => garbage.trashOrphans(strays))).toBe(1)

    const inTrash = await metadata.garbage.claimTrashed(0, 0, 10)
    expect(inTrash).toEqual([
      { storageKey: trashed, notes: 'first' },
      { storageKey: stray, notes: undefined },
    ])
  })

  test('an upload’s key cannot go to the trash while a blob has a key that is made of it', async () => {
    const shelf = await openShelf(await open())
    const { metadata, accountId } = shelf
    const key = freshKey()
    await metadata.transaction(({ blobs }) =>
      blobs.add(accountId, digestOf('a'), { sizeBytes: 1, key: derived(key, '0f0f0f0f') }),
    )

    const outcome = metadata.transaction(({ garbage }) => garbage.trash({ storageKey: key, notes: undefined }))

    expect(await outcome.catch((error: unknown) => String(error))).toContain('still in use')
    expect(await metadata.transaction(({ garbage }) => garbage.trashOrphans([strayAt(key)]))).toBe(0)
    const similar = derived(key, '0f0f0f0e')
    await metadata.transaction(({ garbage }) => garbage.trash({ storageKey: similar, notes: undefined }))
  })
}
