// The contract of inline bytes: of blobs, which are stored in their rows, and of unfinished uploads.
import { expect, test } from 'bun:test'
import { digestOf } from '../support/basics/generated-bytes.ts'
import { errorOf } from '../support/basics/outcomes.ts'
import { addBlob, addInlineBlob, freshUploadId, hourMs, noAges, openShelf } from '../support/stores/metadata-rows.ts'
import { freshKey } from '../support/stores/stored-objects.ts'
import type { OpenMetadataStore } from './metadata-store.ts'

export function inlineBlobsContract(open: OpenMetadataStore): void {
  blobs(open)
  uploads(open)
}

function blobs(open: OpenMetadataStore): void {
  test.each(['', 'small', 'x'.repeat(64 * 1024)])('that are inline have their bytes (%#)', async (text) => {
    const shelf = await openShelf(await open())
    const { metadata, scope, accountId } = shelf
    const { id, digest, key } = await addInlineBlob(shelf, text)
    const found = await metadata.blobs.find(scope, digest)

    expect(found).toMatchObject({
      blobId: id,
      sizeBytes: text.length,
      storageKey: key,
      isInline: true,
      isDamaged: false,
    })
    // The second call may be answered from memory.
    for (let call = 0; call < 2; call += 1) {
      const bytes = await metadata.blobs.findInlineBytes({ blobId: id, storageKey: key })
      expect(new TextDecoder().decode(bytes)).toBe(text)
    }
    expect(await metadata.transaction(({ blobs }) => blobs.findLocked(accountId, digest))).toMatchObject({
      isInline: true,
    })
  })

  test('that are objects have no inline bytes, and neither has an unknown blob nor another key', async () => {
    const shelf = await openShelf(await open())
    const { metadata, scope } = shelf
    const [object, inline] = [await addBlob(shelf, 'object'), await addInlineBlob(shelf, 'inline')]
    const findBytes = (blobId: number, storageKey = freshKey()) =>
      metadata.blobs.findInlineBytes({ blobId, storageKey })

    expect((await metadata.blobs.find(scope, object.digest))?.isInline).toBe(false)
    expect(await findBytes(object.id, object.key)).toBeUndefined()
    expect(await findBytes(inline.id)).toBeUndefined()
    expect(await findBytes(999_999, object.key)).toBeUndefined()
  })

  test('that are inline are never damaged, and need all of their bytes', async () => {
    const shelf = await openShelf(await open())
    const { metadata, repository, scope } = shelf
    const { id, digest, key } = await addInlineBlob(shelf, 'small')

    expect(await metadata.blobs.markDamaged({ blobId: id, storageKey: key })).toBe(false)
    expect(await metadata.blobs.find(scope, digest)).toMatchObject({ isInline: true, isDamaged: false })
    const content = { sizeBytes: 6, key: freshKey(), inlineBytes: new Uint8Array(5) }
    const add = metadata.transaction(({ blobs }) => blobs.add(repository.accountId, digestOf('other'), content))
    expect(await errorOf(add)).toBeDefined()
  })

  test('that are damaged objects become inline when small bytes replace them, and objects when large ones do', async () => {
    const shelf = await openShelf(await open())
    const { metadata, accountId, scope } = shelf
    const { id, digest, key } = await addBlob(shelf, 'small')
    await metadata.blobs.markDamaged({ blobId: id, storageKey: key })
    const inlineBytes = new TextEncoder().encode('small')
    const content = { sizeBytes: 5, key: freshKey(), inlineBytes }

    const replaced = await metadata.transaction(({ blobs }) => blobs.replaceDamaged(accountId, digest, content))

    expect(replaced).toEqual({ id, sizeBytes: 5, storageKey: content.key, isInline: true })
    expect(await metadata.blobs.find(scope, digest)).toMatchObject({ isInline: true, isDamaged: false })
    expect(await metadata.blobs.findInlineBytes({ blobId: id, storageKey: content.key })).toEqual(inlineBytes)
    expect(await metadata.garbage.claimTrashed(0, 0, 10)).toEqual([{ storageKey: key, notes: undefined }])
  })

  test('that are inline lose their bytes with their row, and leave no object to remove', async () => {
    const shelf = await openShelf(await open())
    const { metadata, accountId, scope } = shelf
    const { id, digest, key } = await addInlineBlob(shelf, 'small')
    const candidate = { accountId, blobId: id, storageKey: key, sizeBytes: 5 }

    await metadata.transaction(({ garbage }) => garbage.moveToTrash(candidate))

    expect(await metadata.blobs.find(scope, digest)).toBeUndefined()
    expect(await metadata.blobs.findInlineBytes({ blobId: id, storageKey: key })).toBeUndefined()
    expect(await metadata.garbage.claimTrashed(0, 0, 10)).toEqual([])
  })
}

function uploads(open: OpenMetadataStore): void {
  async function openUpload() {
    const shelf = await openShelf(await open())
    const { metadata, repository, owner } = shelf
    const { id, storageKey } = await metadata.transaction((tables) =>
      tables.uploads.create(repository, owner.subject, freshUploadId(), freshKey(), 0),
    )
    const claim = async () => {
      const upload = await metadata.uploads.claimTurn(owner, id, hourMs)
      if (upload === undefined) throw new Error('the turn was not free')
      return upload
    }
    return { ...shelf, id, storageKey, claim }
  }

  test.each([0, 5, 64 * 1024])('with %d bytes keep them, and give them to the next writer only', async (sizeBytes) => {
    const { metadata, owner, id, claim } = await openUpload()
    const object = { sizeBytes, notes: undefined, inlineBytes: new Uint8Array(sizeBytes).fill(7) }

    expect(await metadata.uploads.releaseTurn(await claim(), object, undefined)).toBe(true)

    expect(await metadata.uploads.find(owner, id)).toMatchObject({ open: { object: { sizeBytes, notes: undefined } } })
    expect(await metadata.uploads.find(owner, id)).not.toHaveProperty('open.object.inlineBytes')
    const { inlineBytes, ...rest } = (await claim()).object
    expect(rest).toEqual({ sizeBytes, notes: undefined })
    expect(new Uint8Array(inlineBytes ?? [1])).toEqual(object.inlineBytes)
  })

  test('that become an object have no inline bytes any more', async () => {
    const { metadata, claim } = await openUpload()
    const inlineBytes = new Uint8Array(5)
    await metadata.uploads.releaseTurn(await claim(), { sizeBytes: 5, notes: undefined, inlineBytes }, undefined)
    await metadata.uploads.releaseTurn(await claim(), { sizeBytes: 50_000, notes: 'part 1' }, undefined)

    expect((await claim()).object).toEqual({ sizeBytes: 50_000, notes: 'part 1' })
  })

  test('keep their bytes when a turn ends without new ones, and when a writer has lost its turn', async () => {
    const { metadata, claim } = await openUpload()
    const inlineBytes = new Uint8Array([1, 2, 3])
    const first = await claim()
    await metadata.uploads.releaseTurn(first, { sizeBytes: 3, notes: undefined, inlineBytes }, undefined)
    await metadata.uploads.renewTurn(await claim(), 0)
    const late = { sizeBytes: 1, notes: undefined, inlineBytes: new Uint8Array(1) }

    expect(await metadata.uploads.releaseTurn(first, late, undefined)).toBe(false)
    expect(new Uint8Array((await claim()).object.inlineBytes ?? [])).toEqual(inlineBytes)
  })

  test('that are committed or expire keep no bytes, and free their key', async () => {
    const one = await openUpload()
    const { metadata, repository } = one
    const inlineBytes = new TextEncoder().encode('small')
    const object = { sizeBytes: 5, notes: undefined, inlineBytes }
    await metadata.uploads.releaseTurn(await one.claim(), object, undefined)
    const digest = digestOf('small')
    const upload = await one.claim()
    await metadata.transaction(async (tables) => {
      await tables.uploads.commit(upload, digest)
      const content = { sizeBytes: 5, key: upload.storageKey, inlineBytes }
      const blob = await tables.blobs.add(repository.accountId, digest, content)
      if (blob !== undefined) await tables.blobs.link(repository, blob.id, digest)
    })

    expect(await metadata.uploads.find(one.owner, one.id)).toEqual({ done: digest })
    expect(await metadata.blobs.find(one.scope, digest)).toMatchObject({ storageKey: one.storageKey, isInline: true })
    const other = await openUpload()
    await other.metadata.uploads.releaseTurn(await other.claim(), object, undefined)
    expect(await other.metadata.transaction(({ garbage }) => garbage.expireUploads(noAges, 10))).toBe(1)
    expect(await other.metadata.garbage.claimTrashed(0, 0, 10)).toEqual([
      { storageKey: other.storageKey, notes: undefined },
    ])
  })
}
