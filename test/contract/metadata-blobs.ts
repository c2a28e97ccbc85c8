// The contract of blobs and of the links by which repositories claim them.
import { expect, test } from 'bun:test'
import { digestOf } from '../support/basics/generated-bytes.ts'
import {
  addBlob,
  addManifest,
  hourMs,
  named,
  openShelf,
  passTime,
  type Shelf,
} from '../support/stores/metadata-rows.ts'
import { freshKey } from '../support/stores/stored-objects.ts'
import type { OpenMetadataStore } from './metadata-store.ts'

export function blobLinksContract(open: OpenMetadataStore): void {
  linking(open)
  leasing(open)
  losing(open)
}

function losing(open: OpenMetadataStore): void {
  async function shelfWithLoss() {
    const shelf = await openShelf(await open())
    const blob = await addBlob(shelf, 'layer')
    const { metadata, repository, scope } = shelf
    const at = { blobId: blob.id, storageKey: blob.key }
    const look = async () => ({
      found: await metadata.blobs.find(scope, blob.digest),
      locked: await metadata.transaction(({ blobs }) => blobs.lockByDigests(repository, [blob.digest])),
      holders: await metadata.blobs.listHolders(shelf.accountId, blob.digest, 10),
    })
    const replace = (storageKey = freshKey(), digest = blob.digest) =>
      metadata.transaction(async ({ blobs }) =>
        blobs.replaceDamaged(shelf.accountId, digest, { sizeBytes: 5, key: storageKey }),
      )
    return { shelf, blob, at, look, replace, metadata }
  }

  test('are damaged for every reader from the mark until it is removed', async () => {
    const { shelf, blob, at, look, metadata } = await shelfWithLoss()
    const bystander = await addBlob(shelf, 'bystander')

    expect(await metadata.blobs.markDamaged({ ...at, storageKey: freshKey() })).toBe(false)
    expect(await metadata.blobs.markDamaged({ ...at, blobId: bystander.id })).toBe(false)
    expect(await look()).toMatchObject({ found: { isDamaged: false }, holders: ['app'] })
    const marks = await Promise.all(Array.from({ length: 8 }, () => metadata.blobs.markDamaged(at)))

    expect(marks.filter((isOurs) => isOurs)).toEqual([true])
    expect(await look()).toEqual({
      found: expect.objectContaining({ blobId: blob.id, isDamaged: true }),
      locked: new Map([[blob.digest, { id: blob.id, isDamaged: true }]]),
      holders: [],
    })
    expect((await metadata.blobs.find(shelf.scope, bystander.digest))?.isDamaged).toBe(false)

    expect(await metadata.blobs.unmarkDamaged({ ...at, storageKey: freshKey() })).toBe(false)
    expect([await metadata.blobs.unmarkDamaged(at), await metadata.blobs.unmarkDamaged(at)]).toEqual([true, false])
    expect(await look()).toMatchObject({ found: { isDamaged: false }, holders: ['app'] })
  })

  test('that are damaged are replaced by one of many concurrent pushes; the former key goes to the trash', async () => {
    const { shelf, blob, at, look, replace, metadata } = await shelfWithLoss()
    await addManifest(shelf, 'image', { blobs: [blob] })
    expect(await replace()).toBeUndefined()
    await metadata.blobs.markDamaged(at)
    expect(await replace(freshKey(), digestOf('another'))).toBeUndefined()

    const replaced = await Promise.all(Array.from({ length: 8 }, () => replace()))

    const { found, holders } = await look()
    const storageKey = found?.storageKey ?? blob.key
    expect(replaced.filter((row) => row !== undefined)).toEqual([
      { id: blob.id, sizeBytes: 5, storageKey, isInline: false },
    ])
    expect(found).toMatchObject({ blobId: blob.id, isDamaged: false })
    expect(found?.storageKey).not.toBe(blob.key)
    expect(holders).toEqual([named('app')])
    expect(await metadata.transaction(({ blobs }) => blobs.isUsed(shelf.repository, blob.id))).toBe(true)
    expect(await metadata.garbage.claimTrashed(0, 0, 10)).toEqual([{ storageKey: blob.key, notes: undefined }])
    // A reader that still has the former row does not mark the new one.
    expect(await metadata.blobs.markDamaged(at)).toBe(false)
  })

  test('that are damaged get no bytes while they are being collected, nor afterwards', async () => {
    const { shelf, blob, at, replace, metadata } = await shelfWithLoss()
    await metadata.blobs.markDamaged(at)
    let replacing: Promise<unknown> = Promise.resolve()

    await metadata.transaction(async ({ garbage }) => {
      await garbage.lockNextDue(0, 0, 10)
      replacing = replace()
      await Bun.sleep(50)
      await garbage.moveToTrash({ accountId: shelf.accountId, blobId: blob.id, storageKey: blob.key, sizeBytes: 5 })
    })

    expect(await replacing).toBeUndefined()
    expect(await metadata.blobs.markDamaged(at)).toBe(false)
    expect(await metadata.blobs.find(shelf.scope, blob.digest)).toBeUndefined()
  })
}

function linking(open: OpenMetadataStore): void {
  test('are found by repositories that link them, until the link is removed', async () => {
    const shelf = await openShelf(await open())
    const { metadata } = shelf
    const other = await openShelf(metadata, 'acme', 'other')
    const { id, digest, key } = await addBlob(shelf, 'layer')
    const find = ({ scope }: Shelf) => metadata.blobs.find(scope, digest)
    const found = (of: Shelf) => ({ blobId: id, repositoryId: of.repository.id, sizeBytes: 5, storageKey: key })

    expect(await find(shelf)).toMatchObject(found(shelf))
    expect(await find(other)).toBeUndefined()
    await metadata.transaction((tables) => tables.blobs.link(other.repository, id, digest))
    await metadata.transaction((tables) => tables.blobs.unlink(shelf.repository, id))
    expect(await find(shelf)).toBeUndefined()
    expect(await find(other)).toMatchObject(found(other))
  })

  test('of no bytes at all, and of more than 2^32 bytes, keep their size', async () => {
    const { metadata, repository, scope } = await openShelf(await open())

    for (const sizeBytes of [0, 5_000_000_000, 2 ** 50]) {
      const digest = digestOf(String(sizeBytes))
      await metadata.transaction(async ({ blobs }) => {
        const made = await blobs.add(repository.accountId, digest, { sizeBytes, key: freshKey() })
        if (made !== undefined) await blobs.link(repository, made.id, digest)
      })
      expect((await metadata.blobs.find(scope, digest))?.sizeBytes).toBe(sizeBytes)
    }
  })

  test('are added once to an account, also by many at once, and found there whether linked or not', async () => {
    const { metadata, accountId } = await openShelf(await open())
    const digest = digestOf('layer')
    const add = () =>
      metadata.transaction(({ blobs }) => blobs.add(accountId, digest, { sizeBytes: 5, key: freshKey() }))

    const added = (await Promise.all(Array.from({ length: 20 }, add))).filter((row) => row !== undefined)

    expect(added).toHaveLength(1)
    expect(await add()).toBeUndefined()
    const find = (of: typeof digest) => metadata.transaction(({ blobs }) => blobs.findLocked(accountId, of))
    expect([await find(digest), await find(digestOf('missing'))]).toEqual([added[0], undefined])
  })

  test('are locked by their digests, those of other repositories left out', async () => {
    const shelf = await openShelf(await open())
    const [one, two] = [await addBlob(shelf, 'one'), await addBlob(shelf, 'two')]
    const foreign = await addBlob(await openShelf(shelf.metadata, 'acme', 'other'), 'three')
    const digests = [two, one, foreign].map((blob) => blob.digest)

    const locked = await shelf.metadata.transaction((tables) => tables.blobs.lockByDigests(shelf.repository, digests))

    expect(locked).toEqual(new Map([one, two].map(({ digest, id }) => [digest, { id, isDamaged: false }])))
  })

  test('list the other repositories of the account that hold them, up to a limit', async () => {
    const { metadata } = await openShelf(await open())
    const first = await openShelf(metadata, 'acme', 'first')
    const { id, digest } = await addBlob(first, 'layer')
    for (const name of ['second', 'third']) {
      const { repository } = await openShelf(metadata, 'acme', name)
      await metadata.transaction((tables) => tables.blobs.link(repository, id, digest))
    }

    const holders = await metadata.blobs.listHolders(first.accountId, digest, 10)
    expect(holders.map(String).toSorted()).toEqual(['first', 'second', 'third'])
    expect(await metadata.blobs.listHolders(first.accountId, digest, 2)).toHaveLength(2)
    expect(await metadata.blobs.listHolders(first.accountId, digestOf('missing'), 10)).toEqual([])
  })
}

function leasing(open: OpenMetadataStore): void {
  test('begin their lease again when they are linked again or renewed', async () => {
    const shelf = await openShelf(await open())
    const { metadata, repository, scope } = shelf
    const { id, digest } = await addBlob(shelf, 'layer')
    const begunAt = async () => (await metadata.blobs.find(scope, digest))?.leasedAt ?? 0
    const first = await begunAt()
    expect(Math.abs((await metadata.now()) - first)).toBeLessThan(hourMs)
    await Bun.sleep(50)

    await metadata.transaction((tables) => tables.blobs.link(repository, id, digest))
    const second = await begunAt()
    await Bun.sleep(50)
    await metadata.transaction((tables) => tables.blobs.renewLeases(repository, [id]))
    await metadata.transaction((tables) => tables.blobs.renewLeases(repository, []))
    const third = await begunAt()

    expect(second - first).toBeGreaterThan(20)
    expect(third - second).toBeGreaterThan(20)
  })

  test('are queued for the collector when they are linked, renewed or unlinked', async () => {
    const shelf = await openShelf(await open())
    const { metadata, repository } = shelf
    const { id, digest } = await addBlob(shelf, 'layer')
    await addManifest(shelf, 'one', { blobs: [{ id, digest, key: freshKey() }] })
    const other = await openShelf(metadata, 'acme', 'other')
    const dequeue = () =>
      metadata.transaction(async ({ garbage }) => {
        const candidate = await garbage.lockNextDue(0, 0, 10)
        if (candidate !== undefined) await garbage.keep(candidate)
        return candidate?.blobId
      })

    expect(await dequeue()).toBe(id)
    expect(await dequeue()).toBeUndefined()
    await metadata.transaction((tables) => tables.blobs.link(other.repository, id, digest))
    await passTime()
    expect(await dequeue()).toBe(id)
    await metadata.transaction((tables) => tables.blobs.renewLeases(repository, [id]))
    expect(await dequeue()).toBe(id)
    await metadata.transaction((tables) => tables.blobs.unlink(other.repository, id))
    expect(await dequeue()).toBe(id)
  })
}
