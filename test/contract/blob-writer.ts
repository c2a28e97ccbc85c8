// What every blob store's writers promise, as tests: part of the contract in blob-store.ts.
import { expect, test } from 'bun:test'
import { digestOf, digestOfChunks, generatedBytes, generatedChunks } from '../support/basics/generated-bytes.ts'
import { errorOf } from '../support/basics/outcomes.ts'
import { emptyObject, freshKey, type OpenedBlobStore, readAll, storeWhole } from '../support/stores/stored-objects.ts'

export function appending(open: () => Promise<OpenedBlobStore>): void {
  const head = generatedBytes(700_000, 1)
  const tail = generatedBytes(30_000, 2)
  const whole = new Uint8Array(Buffer.concat([head, tail]))

  test('goes on where flush said it stands', async () => {
    const { store } = await open()
    const key = freshKey()
    const first = await store.openWriter(key, emptyObject)
    await first.write(head)
    const stands = await first.flush()
    await first.close()

    const second = await store.openWriter(key, stands)
    await second.write(tail)
    const { key: done } = await second.complete()
    await second.close()

    expect(stands.sizeBytes).toBe(head.length)
    expect(await readAll(await store.open(done, whole.length))).toEqual(whole)
  })

  test('goes on where flush said it stands after it was opened again', async () => {
    const { store, reopen } = await open()
    const key = freshKey()
    const first = await store.openWriter(key, emptyObject)
    await first.write(head)
    const stands = await first.flush()
    await first.close()

    const again = await reopen()
    const second = await again.openWriter(key, stands)
    await second.write(tail)
    const { key: done } = await second.complete()
    await second.close()

    expect(await readAll(await again.open(done, whole.length))).toEqual(whole)
  })

  test('drops bytes behind the point that was acknowledged', async () => {
    const { store } = await open()
    const key = freshKey()
    const first = await store.openWriter(key, emptyObject)
    await first.write(head)
    const stands = await first.flush()
    await first.write(generatedBytes(900_000, 3))
    await first.flush()
    await first.close()

    const second = await store.openWriter(key, stands)
    await second.write(tail)
    const { key: done } = await second.complete()
    await second.close()

    expect(await readAll(await store.open(done, whole.length))).toEqual(whole)
  })

  test('begins again at 0, whatever an earlier writer left', async () => {
    const { store } = await open()
    const key = freshKey()
    const first = await store.openWriter(key, emptyObject)
    await first.write(head)
    await first.flush()
    await first.close()

    const second = await store.openWriter(key, emptyObject)
    await second.write(tail)
    const { key: done } = await second.complete()
    await second.close()

    expect(await readAll(await store.open(done, tail.length))).toEqual(tail)
    expect(await store.open(done, head.length)).toBeUndefined()
  })

  test('refuses to continue behind the end of the stored bytes', async () => {
    const { store } = await open()
    const key = await storeWhole(store, tail)

    await errorOf(store.openWriter(key, { sizeBytes: tail.length + 1, notes: undefined }))
  })

  test('may be flushed several times by one writer, empty flushes too', async () => {
    const { store } = await open()
    const key = freshKey()
    const writer = await store.openWriter(key, emptyObject)

    expect((await writer.flush()).sizeBytes).toBe(0)
    await writer.write(head)
    expect((await writer.flush()).sizeBytes).toBe(head.length)
    expect((await writer.flush()).sizeBytes).toBe(head.length)
    await writer.write(tail)
    const { key: done } = await writer.complete()
    await writer.close()

    expect(await readAll(await store.open(done, whole.length))).toEqual(whole)
  })

  test('may be closed twice, and before anything was written', async () => {
    const { store } = await open()
    const unused = await store.openWriter(freshKey(), emptyObject)
    await unused.close()
    await unused.close()

    const key = freshKey()
    const used = await store.openWriter(key, emptyObject)
    await used.write(tail)
    const { key: done } = await used.complete()
    await used.close()
    await used.close()

    expect(await readAll(await store.open(done, tail.length))).toEqual(tail)
  })

  test('keeps what flush acknowledged when the writer is closed with more in hand', async () => {
    const { store } = await open()
    const key = freshKey()
    const writer = await store.openWriter(key, emptyObject)
    await writer.write(head)
    const stands = await writer.flush()
    await writer.write(tail)
    await writer.close()

    const next = await store.openWriter(key, stands)
    const { key: done } = await next.complete()
    await next.close()

    expect(await readAll(await store.open(done, head.length))).toEqual(head)
  })
}

export function streaming(open: () => Promise<OpenedBlobStore>): void {
  test('takes very many very small pieces', async () => {
    const { store } = await open()
    const bytes = generatedBytes(50_000)
    const key = freshKey()
    const writer = await store.openWriter(key, emptyObject)

    for (let at = 0; at < bytes.length; at += 1) await writer.write(bytes.subarray(at, at + 1))
    const { key: done } = await writer.complete()
    await writer.close()

    expect(await readAll(await store.open(done, bytes.length))).toEqual(bytes)
  })

  test('takes pieces of all sizes', async () => {
    const { store } = await open()
    const sizes = [0, 1, 524_287, 524_288, 524_289, 0, 3_000_000, 7]
    const pieces = sizes.map((size, index) => generatedBytes(size, index))
    const total = sizes.reduce((sum, size) => sum + size, 0)
    const key = freshKey()
    const writer = await store.openWriter(key, emptyObject)

    for (const piece of pieces) await writer.write(piece)
    const { key: done } = await writer.complete()
    await writer.close()

    const read = await readAll(await store.open(done, total))
    expect(read && digestOf(read)).toBe(digestOf(Buffer.concat(pieces)))
  })

  test('takes a long stream', async () => {
    const { store } = await open()
    const sizeBytes = 40_000_003
    const key = freshKey()
    const writer = await store.openWriter(key, emptyObject)

    for (const chunk of generatedChunks(sizeBytes, 100_001)) await writer.write(chunk)
    const { key: done } = await writer.complete()
    await writer.close()

    const read = await readAll(await store.open(done, sizeBytes))
    expect(read && digestOf(read)).toBe(digestOfChunks(generatedChunks(sizeBytes, 100_001)))
  })

  test('keeps writers of different objects apart', async () => {
    const { store } = await open()
    const contents = [1, 2, 3, 4, 5].map((seed) => generatedBytes(600_000, seed))

    const keys = await Promise.all(contents.map((bytes) => storeWhole(store, bytes)))

    for (const [index, key] of keys.entries()) {
      expect(await readAll(await store.open(key, 600_000))).toEqual(contents[index])
    }
  })
}
