// The contract of the collector's tables: which blobs are due, live, in the trash, or purged.
import { expect, test } from 'bun:test'
import { outcomeOf } from '../support/basics/outcomes.ts'
import {
  addBlob,
  addManifest,
  candidateOf,
  freshUploadId,
  hourMs,
  longAges,
  noAges,
  openShelf,
  passTime,
  type Shelf,
} from '../support/stores/metadata-rows.ts'
import { freshKey } from '../support/stores/stored-objects.ts'
import type { OpenMetadataStore } from './metadata-store.ts'

/** One look of the collector: keeps or buries, and tells which. */
async function look({ metadata }: Shelf, leaseMs: number): Promise<'nothing' | 'kept' | 'buried'> {
  return metadata.transaction(async ({ garbage }) => {
    const candidate = await garbage.lockNextDue(leaseMs, 0, 10)
    if (candidate === undefined || candidate.isDisabled) return 'nothing'
    if (await garbage.isInUse(candidate, leaseMs)) {
      await garbage.removeUnusedLinks(candidate, leaseMs, 0, 10)
      await garbage.keep(candidate)
      return 'kept'
    }
    await garbage.moveToTrash(candidate)
    return 'buried'
  })
}

export function garbageContract(open: OpenMetadataStore): void {
  queueing(open)
  burying(open)
  purging(open)
  forecasting(open)
}

function queueing(open: OpenMetadataStore): void {
  test('gives blobs whose lease time is over, the one that waits longest first', async () => {
    const shelf = await openShelf(await open())
    const first = await addBlob(shelf, 'first')
    await passTime()
    await addBlob(shelf, 'second')
    const next = (leaseMs: number) => shelf.metadata.transaction((tables) => tables.garbage.lockNextDue(leaseMs, 0, 10))

    expect(await next(hourMs)).toBeUndefined()
    expect(await next(0)).toEqual({
      accountId: shelf.accountId,
      blobId: first.id,
      storageKey: first.key,
      sizeBytes: 5,
      queuedAt: expect.any(Number),
      isDisabled: false,
      hasMoreLinks: false,
    })
  })

  test('keeps a blob while a link is leased or a manifest of any repository names it, which takes it off the queue', async () => {
    const shelf = await openShelf(await open())
    const { metadata } = shelf
    const other = await openShelf(metadata, 'acme', 'other')
    const blob = await addBlob(shelf, 'layer')
    const isLive = (leaseMs: number) =>
      metadata.transaction(({ garbage }) => garbage.isInUse(candidateOf(shelf, blob), leaseMs))

    expect([await isLive(hourMs), await isLive(0)]).toEqual([true, false])
    await metadata.transaction((tables) => tables.blobs.link(other.repository, blob.id, blob.digest))
    const { id } = await addManifest(other, 'one', { blobs: [blob] })
    expect(await isLive(0)).toBe(true)
    expect([await look(shelf, 0), await look(shelf, 0)]).toEqual(['kept', 'nothing'])

    await metadata.transaction(async ({ blobs, manifests }) => {
      await blobs.renewLeases(other.repository, await manifests.listBlobs(other.repository, id))
      await manifests.remove(other.repository, id)
    })
    expect([await look(shelf, hourMs), await look(shelf, 0)]).toEqual(['nothing', 'buried'])
  })

  test('keeps a leased blob in the queue, at its end', async () => {
    const shelf = await openShelf(await open())
    const [first, second] = [await addBlob(shelf, 'first'), await addBlob(shelf, 'second')]
    await passTime()
    const kept: (number | undefined)[] = []

    for (let turn = 0; turn < 3; turn += 1) {
      await shelf.metadata.transaction(async ({ garbage }) => {
        const candidate = await garbage.lockNextDue(0, 0, 10)
        if (candidate !== undefined) await garbage.keep(candidate)
        kept.push(candidate?.blobId)
      })
      await passTime()
    }

    expect(kept.slice(0, 2).toSorted()).toEqual([first.id, second.id])
    expect(kept[2]).toBe(kept[0])
  })

  test('drops links without a use whose lease is over when it keeps a blob, and no others', async () => {
    const shelf = await openShelf(await open())
    const { metadata } = shelf
    const unused = await openShelf(metadata, 'acme', 'unused')
    const blob = await addBlob(shelf, 'layer')
    await metadata.transaction((tables) => tables.blobs.link(unused.repository, blob.id, blob.digest))
    await addManifest(shelf, 'one', { blobs: [blob] })

    expect(await look(shelf, 0)).toBe('kept')

    expect(await metadata.blobs.find(shelf.scope, blob.digest)).toBeDefined()
    expect(await metadata.blobs.find(unused.scope, blob.digest)).toBeUndefined()
  })

  test('leaves disabled accounts alone, and goes on when they are enabled again', async () => {
    const shelf = await openShelf(await open())
    const { metadata, repository } = shelf
    await addBlob(shelf, 'layer')
    await metadata.uploads.create(repository, 'alice', freshUploadId(), freshKey(), 0)
    const expire = () => metadata.transaction((tables) => tables.garbage.expireUploads(noAges, 10))
    await metadata.accounts.setState('acme', 'disabled')

    expect(await look(shelf, 0)).toBe('nothing')
    expect(await expire()).toBe(0)
    expect(await metadata.garbage.forecast(noAges)).toEqual({ blobs: 0, bytes: 0, uploads: 0, trashed: 0 })
    await metadata.accounts.setState('acme', 'enabled')

    expect(await look(shelf, 0)).toBe('buried')
    expect(await expire()).toBe(1)
  })
}

function burying(open: OpenMetadataStore): void {
  test('buries a blob with all its links, its key goes to the trash, and a later blob of its digest is a new one', async () => {
    const shelf = await openShelf(await open())
    const { metadata } = shelf
    const other = await openShelf(metadata, 'acme', 'other')
    const { id, digest, key } = await addBlob(shelf, 'layer')
    await metadata.transaction((tables) => tables.blobs.link(other.repository, id, digest))

    expect(await look(shelf, 0)).toBe('buried')

    for (const { scope } of [shelf, other]) expect(await metadata.blobs.find(scope, digest)).toBeUndefined()
    expect(await metadata.transaction((tables) => tables.blobs.findLocked(shelf.accountId, digest))).toBeUndefined()
    expect(await look(shelf, 0)).toBe('nothing')
    const fresh = await addBlob(shelf, 'layer')
    expect((await metadata.blobs.find(shelf.scope, digest))?.storageKey).toBe(fresh.key)
    expect(await metadata.garbage.claimTrashed(0, 0, 10)).toEqual([{ storageKey: key, notes: undefined }])
  })

  test('cannot move a blob of a manifest to the trash, even if the collector asks for it', async () => {
    const shelf = await openShelf(await open())
    const { metadata } = shelf
    const { id, digest, key } = await addBlob(shelf, 'layer')
    await addManifest(shelf, 'one', { blobs: [{ id, digest, key }] })
    const candidate = { accountId: shelf.accountId, blobId: id, storageKey: key, sizeBytes: 5 }

    expect(await outcomeOf(metadata.transaction(({ garbage }) => garbage.moveToTrash(candidate)))).toBe('refused')

    expect((await metadata.blobs.find(shelf.scope, digest))?.storageKey).toBe(key)
    expect(await metadata.garbage.claimTrashed(0, 0, 10)).toEqual([])
  })
}

function purging(open: OpenMetadataStore): void {
  test('gives trash whose quarantine is over, at most as much as is asked for, until it is forgotten', async () => {
    const { metadata } = await openShelf(await open())
    const keys = [freshKey(), freshKey(), freshKey()]
    for (const storageKey of keys) {
      await metadata.transaction(({ garbage }) => garbage.trash({ storageKey, notes: 'a note' }))
      await passTime()
    }
    const list = async (quarantineMs: number, limit: number) =>
      (await metadata.garbage.claimTrashed(quarantineMs, 0, limit)).map((object) => object.storageKey)

    expect(await list(hourMs, 10)).toEqual([])
    expect(await list(0, 2)).toEqual(keys.slice(0, 2))
    await metadata.garbage.removeTrashed(keys[0] ?? freshKey())
    await metadata.garbage.removeTrashed(keys[0] ?? freshKey())
    expect(await list(0, 10)).toEqual(keys.slice(1))
  })
}

function forecasting(open: OpenMetadataStore): void {
  test('forecasts what a collection would do, and changes nothing by it', async () => {
    const shelf = await openShelf(await open())
    const { metadata, repository } = shelf
    await addManifest(shelf, 'one', { blobs: [await addBlob(shelf, 'used')] })
    await addBlob(shelf, 'unused')
    await addBlob(shelf, 'unused too')
    await metadata.uploads.create(repository, 'alice', freshUploadId(), freshKey(), 0)
    await metadata.transaction(({ garbage }) => garbage.trash({ storageKey: freshKey(), notes: undefined }))

    const forecast = { blobs: 2, bytes: 'unused'.length + 'unused too'.length, uploads: 1, trashed: 1 }
    expect(await metadata.garbage.forecast(noAges)).toEqual(forecast)
    expect(await metadata.garbage.forecast(noAges)).toEqual(forecast)
    expect(await metadata.garbage.forecast(longAges)).toEqual({ blobs: 0, bytes: 0, uploads: 0, trashed: 0 })

    expect([await look(shelf, 0), await look(shelf, 0), await look(shelf, 0), await look(shelf, 0)].toSorted()).toEqual(
      ['buried', 'buried', 'kept', 'nothing'],
    )
  })
}
