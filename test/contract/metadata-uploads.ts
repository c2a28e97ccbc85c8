// The contract of upload sessions: whose they are, how they end, what is left of them.
import { expect, test } from 'bun:test'
import type { UploadId } from '../../src/ports/uploads.ts'
import { digestOf } from '../support/basics/generated-bytes.ts'
import { errorOf } from '../support/basics/outcomes.ts'
import { freshUploadId, hourMs, named, noAges, openShelf, type Shelf } from '../support/stores/metadata-rows.ts'
import { freshKey } from '../support/stores/stored-objects.ts'
import type { OpenMetadataStore } from './metadata-store.ts'

const digest = digestOf('the whole')

async function beginUpload({ metadata, repository, owner }: Shelf, turnMs = 0) {
  return metadata.transaction((tables) =>
    tables.uploads.create(repository, owner.subject, freshUploadId(), freshKey(), turnMs),
  )
}

export function uploadsContract(open: OpenMetadataStore): void {
  beginning(open)
  finishing(open)
  discarding(open)
}

function beginning(open: OpenMetadataStore): void {
  test('begin empty and are found by their owner', async () => {
    const shelf = await openShelf(await open())

    const upload = await beginUpload(shelf)

    expect(upload).toMatchObject({ repository: shelf.repository, object: { sizeBytes: 0, notes: undefined } })
    expect(await shelf.metadata.uploads.find(shelf.owner, upload.id)).toEqual({ open: upload })
  })

  test('do not exist for another person, repository or account, whatever they try', async () => {
    const shelf = await openShelf(await open())
    const { metadata, owner, scope } = shelf
    const other = await openShelf(metadata, 'acme', 'other')
    const foreign = await openShelf(metadata, 'rival')
    const upload = await beginUpload(shelf)
    const otherScopes = [
      { ...scope, subject: 'mallory' },
      other.owner,
      foreign.owner,
      { ...owner, repository: named('none') },
    ]

    for (const otherScope of otherScopes) {
      expect(await metadata.uploads.find(otherScope, upload.id)).toBeUndefined()
      expect(await metadata.uploads.claimTurn(otherScope, upload.id, hourMs)).toBeUndefined()
      expect(await metadata.transaction((tables) => tables.uploads.remove(otherScope, upload.id))).toBe(false)
    }
    expect(await metadata.uploads.find(owner, upload.id)).toEqual({ open: upload })
  })

  test('with the same id in two accounts are two', async () => {
    const metadata = await open()
    const [mine, theirs] = [await openShelf(metadata), await openShelf(metadata, 'rival')]
    const id = freshUploadId()
    for (const { repository } of [mine, theirs]) {
      await metadata.transaction((tables) => tables.uploads.create(repository, 'alice', id, freshKey(), 0))
    }

    await metadata.transaction((tables) => tables.uploads.remove(mine.owner, id))

    expect(await metadata.uploads.find(mine.owner, id)).toBeUndefined()
    expect(await metadata.uploads.find(theirs.owner, id)).toBeDefined()
  })

  test('that are open are counted, finished ones are not', async () => {
    const shelf = await openShelf(await open())
    const { metadata, owner } = shelf
    const other = await openShelf(metadata, 'acme', 'other')
    const [first] = [await beginUpload(shelf), await beginUpload(shelf), await beginUpload(other)]
    await beginUpload({ ...shelf, owner: { ...owner, subject: 'another' } })
    const count = ({ repository }: Shelf, subject = owner.subject) => metadata.uploads.countOpen(repository, subject)
    expect(await count(shelf)).toEqual({ ofRepository: 3, ofSubject: 2 })
    expect(await count(shelf, 'another')).toEqual({ ofRepository: 3, ofSubject: 1 })

    await metadata.transaction((tables) => tables.uploads.commit(first, digest))

    expect(await count(shelf)).toEqual({ ofRepository: 2, ofSubject: 1 })
    expect(await count(other)).toEqual({ ofRepository: 1, ofSubject: 1 })
  })

  test('of one request are not counted while their maker writes, and every other turn is', async () => {
    const shelf = await openShelf(await open())
    const { metadata, repository, owner } = shelf
    await beginUpload(shelf, hourMs)
    await beginUpload(shelf, 1)
    const continued = await beginUpload(shelf)
    await Bun.sleep(20)
    await metadata.uploads.claimTurn(owner, continued.id, hourMs)

    expect(await metadata.uploads.countOpen(repository, owner.subject)).toEqual({ ofRepository: 2, ofSubject: 2 })
  })
}

function finishing(open: OpenMetadataStore): void {
  test('leave a note of how they ended, and can neither be claimed nor discarded any more', async () => {
    const shelf = await openShelf(await open())
    const { metadata, owner } = shelf
    const upload = await beginUpload(shelf)

    expect(await metadata.transaction((tables) => tables.uploads.commit(upload, digest))).toBe(true)

    expect(await metadata.uploads.find(owner, upload.id)).toEqual({ done: digest })
    expect(await metadata.uploads.claimTurn(owner, upload.id, 0)).toBeUndefined()
    expect(await metadata.uploads.releaseTurn(upload, { sizeBytes: 1, notes: undefined }, undefined)).toBe(false)
    expect(await metadata.transaction((tables) => tables.uploads.commit(upload, digestOf('another')))).toBe(false)
    expect(await metadata.transaction((tables) => tables.uploads.remove(owner, upload.id))).toBe(false)
    expect(await metadata.uploads.find(owner, upload.id)).toEqual({ done: digest })
  })

  test('free their key for the blob that they become, in the same transaction', async () => {
    const shelf = await openShelf(await open())
    const { metadata, repository, scope } = shelf
    const upload = await beginUpload(shelf)

    await metadata.transaction(async ({ uploads, blobs }) => {
      await uploads.commit(upload, digest)
      const made = await blobs.add(repository.accountId, digest, { sizeBytes: 9, key: upload.storageKey })
      if (made !== undefined) await blobs.link(repository, made.id, digest)
    })

    expect((await metadata.blobs.find(scope, digest))?.storageKey).toBe(upload.storageKey)
  })

  test('stay open when the transaction that finishes them fails', async () => {
    const shelf = await openShelf(await open())
    const { metadata, owner } = shelf
    const upload = await beginUpload(shelf)

    const fault = await errorOf(
      metadata.transaction(async ({ uploads }) => {
        await uploads.commit(upload, digest)
        throw new Error('changed our mind')
      }),
    )

    expect(fault).toBeInstanceOf(Error)
    expect(await metadata.uploads.find(owner, upload.id)).toEqual({ open: upload })
  })

  test('are forgotten when their note is old enough, and their key is not trashed with it', async () => {
    const shelf = await openShelf(await open())
    const { metadata, owner } = shelf
    const upload = await beginUpload(shelf)
    await metadata.transaction((tables) => tables.uploads.commit(upload, digest))
    const expire = (uploadDoneMs: number) =>
      metadata.transaction((tables) => tables.garbage.expireUploads({ ...noAges, uploadDoneMs }, 10))

    expect(await expire(hourMs)).toBe(0)
    expect(await metadata.uploads.find(owner, upload.id)).toEqual({ done: digest })
    expect(await expire(0)).toBe(1)

    expect(await metadata.uploads.find(owner, upload.id)).toBeUndefined()
    expect(await metadata.garbage.claimTrashed(0, 0, 10)).toEqual([])
  })
}

function discarding(open: OpenMetadataStore): void {
  test('of all callers are listed and removed for operators, the idlest first', async () => {
    const shelf = await openShelf(await open())
    const { metadata, owner } = shelf
    const foreign = await openShelf(metadata, 'rival', 'other')
    const [first, second] = [await beginUpload(shelf), await beginUpload(foreign)]
    const done = await beginUpload(shelf)
    await metadata.transaction((tables) => tables.uploads.commit(done, digest))
    await Bun.sleep(20)
    await metadata.uploads.claimTurn(owner, first.id, hourMs)
    const list = async (account?: string, repository?: string, limit = 10) =>
      (await metadata.uploads.listOpen({ account, repository }, limit)).map(({ id }) => id)

    const all = await metadata.uploads.listOpen({ account: undefined, repository: undefined }, 10)
    expect(all).toMatchObject([
      { id: second.id, account: 'rival', repository: 'other', subject: 'alice', sizeBytes: 0, isWritten: false },
      { id: first.id, account: 'acme', repository: 'app', isWritten: true },
    ])
    expect(all[1]?.ageMs).toBeGreaterThan(all[1]?.idleMs ?? Infinity)
    expect([await list('acme'), await list(undefined, 'other'), await list('acme', 'other')]).toEqual([
      [first.id],
      [second.id],
      [],
    ])
    expect(await list(undefined, undefined, 1)).toEqual([second.id])

    const discard = (id: UploadId) => metadata.transaction((tables) => tables.uploads.removeAny(id))
    expect([await discard(first.id), await discard(first.id), await discard(done.id)]).toEqual([true, false, false])
    expect(await list()).toEqual([second.id])
    expect(await metadata.garbage.claimTrashed(0, 0, 10)).toEqual([{ storageKey: first.storageKey, notes: undefined }])
  })

  test('that are discarded are gone, and their key and notes are in the trash', async () => {
    const shelf = await openShelf(await open())
    const { metadata, owner } = shelf
    const upload = await beginUpload(shelf)
    const claimed = await metadata.uploads.claimTurn(owner, upload.id, hourMs)
    if (claimed === undefined) throw new Error('the turn was free')
    await metadata.uploads.releaseTurn(claimed, { sizeBytes: 7, notes: 'part 1' }, undefined)

    expect(await metadata.transaction((tables) => tables.uploads.remove(owner, upload.id))).toBe(true)
    expect(await metadata.transaction((tables) => tables.uploads.remove(owner, upload.id))).toBe(false)

    expect(await metadata.uploads.find(owner, upload.id)).toBeUndefined()
    expect(await metadata.garbage.claimTrashed(0, 0, 10)).toEqual([{ storageKey: upload.storageKey, notes: 'part 1' }])
  })

  test('may be removed while a writer is active, which then can record nothing', async () => {
    const shelf = await openShelf(await open())
    const { metadata, owner } = shelf
    const upload = await beginUpload(shelf)
    const writer = await metadata.uploads.claimTurn(owner, upload.id, hourMs)
    if (writer === undefined) throw new Error('the turn was free')

    expect(await metadata.transaction((tables) => tables.uploads.remove(owner, upload.id))).toBe(true)

    expect(await metadata.uploads.renewTurn(writer, hourMs)).toBe(false)
    expect(await metadata.uploads.releaseTurn(writer, { sizeBytes: 1, notes: undefined }, undefined)).toBe(false)
    expect(await metadata.transaction((tables) => tables.uploads.commit(writer, digest))).toBe(false)
  })

  test('expire when no request continues them, but not while a writer has the turn', async () => {
    const shelf = await openShelf(await open())
    const { metadata, owner } = shelf
    const idle = await beginUpload(shelf)
    const written = await beginUpload(shelf)
    await metadata.uploads.claimTurn(owner, written.id, hourMs)
    const writtenAtOnce = await beginUpload(shelf, hourMs)

    expect(await metadata.transaction((tables) => tables.garbage.expireUploads(noAges, 10))).toBe(1)

    expect(await metadata.uploads.find(owner, idle.id)).toBeUndefined()
    expect(await metadata.uploads.find(owner, written.id)).toBeDefined()
    expect(await metadata.uploads.find(owner, writtenAtOnce.id)).toBeDefined()
    expect(await metadata.garbage.claimTrashed(0, 0, 10)).toEqual([{ storageKey: idle.storageKey, notes: undefined }])
  })

  test('expire by their age or by their idleness, at most so many at once', async () => {
    const shelf = await openShelf(await open())
    const { metadata } = shelf
    for (let count = 0; count < 5; count += 1) await beginUpload(shelf)
    const expire = (uploadIdleMs: number, uploadMaxMs: number, limit: number) =>
      metadata.transaction((tables) => tables.garbage.expireUploads({ ...noAges, uploadIdleMs, uploadMaxMs }, limit))

    expect(await expire(hourMs, hourMs, 10)).toBe(0)
    expect(await expire(0, hourMs, 2)).toBe(2)
    expect(await expire(hourMs, 0, 10)).toBe(3)
    expect(await metadata.garbage.claimTrashed(0, 0, 10)).toHaveLength(5)
  })
}
