// The contract of every blob store (src/ports/blob-store.ts).
import { describe, expect, test } from 'bun:test'
import { Spoiled, Unavailable } from '../../src/oci/errors.ts'
import type { StorageKey } from '../../src/ports/blob-store.ts'
import { generatedBytes } from '../support/basics/generated-bytes.ts'
import { errorOf } from '../support/basics/outcomes.ts'
import {
  append,
  emptyObject,
  freshKey,
  type OpenedBlobStore,
  readAll,
  storeWhole,
} from '../support/stores/stored-objects.ts'
import { writing } from './blob-writer.ts'

export function blobStoreContract(name: string, open: () => Promise<OpenedBlobStore>, walks: number): void {
  describe(`blob store, ${name}`, () => {
    reading(open)
    keepingOrder(open)
    writing(open, walks)
    removing(open)
  })
}

function reading(open: () => Promise<OpenedBlobStore>): void {
  const bytes = generatedBytes(1_000)

  test('gives objects and their parts byte for byte, also after it was opened again', async () => {
    const opened = await open()
    const [key, empty] = [await storeWhole(opened.store, bytes), await storeWhole(opened.store, new Uint8Array())]
    for (const store of [opened.store, await opened.reopen()]) {
      expect(await readAll(await store.open(key, 1_000))).toEqual(bytes)
      expect(await readAll(await store.read(key, 1_000))).toEqual(bytes)
      expect(await readAll(await store.open(empty, 0))).toEqual(new Uint8Array())
      expect(await readAll(await store.read(empty, 0))).toEqual(new Uint8Array())
      for (const [first, last] of [
        [0, 0],
        [0, 999],
        [10, 19],
        [999, 999],
      ] as const) {
        expect(await readAll(await store.open(key, 1_000, { first, last }))).toEqual(bytes.slice(first, last + 1))
      }
    }
  })

  test('has only objects of the size that was promised', async () => {
    const { store } = await open()
    const key = await storeWhole(store, bytes)

    for (const size of [999, 1_001]) {
      expect([await store.open(key, size), await store.read(key, size), await store.has(key, size)]).toEqual([
        undefined,
        undefined,
        false,
      ])
    }
    expect(await store.open(key, 1_001, { first: 0, last: 9 })).toBeUndefined()
    expect(await store.has(key, 1_000)).toBe(true)
    const unknown = freshKey()
    expect([await store.open(unknown, 0), await store.read(unknown, 0), await store.has(unknown, 0)]).toEqual([
      undefined,
      undefined,
      false,
    ])
    await store.probe()
  })

  test('lets go of a reading that is given up in its middle', async () => {
    const { store } = await open()
    const whole = generatedBytes(3_000_000)
    const key = await storeWhole(store, whole)

    // More than a store has requests at once: what is not let go of is missed then.
    for (let round = 0; round < 100; round += 1) {
      const bytes = (await store.read(key, whole.length)) ?? expect.unreachable()
      for await (const chunk of bytes) {
        expect(chunk.length).toBeGreaterThan(0)
        break
      }
    }
    expect(await readAll(await store.read(key, whole.length))).toEqual(whole)
  })

  test('keeps two objects apart, though their bytes are the same', async () => {
    const { store } = await open()
    const [one, other] = [await storeWhole(store, bytes), await storeWhole(store, bytes)]

    await store.remove(one, undefined)

    expect(await store.open(one, 1_000)).toBeUndefined()
    expect(await readAll(await store.open(other, 1_000))).toEqual(bytes)
  })
}

/** For stores that others can reach. */
export function sharedBlobStoreContract(name: string, open: () => Promise<OpenedBlobStore>): void {
  describe(`blob store, ${name}`, () => {
    test('tells an object that is lost from a store that is not the one that was claimed', async () => {
      const { store, reopen } = await open()
      const bytes = generatedBytes(1_000)
      const key = await storeWhole(store, bytes)
      await store.claim('one', { mayBeNew: true })
      const readings = (size: number) =>
        [store.open(key, size), store.open(key, size, { first: 0, last: 9 }), store.read(key, size)] as const

      // As long as its owner's name stands there, what is missing or of another size is lost.
      expect(await Promise.all(readings(999))).toEqual([undefined, undefined, undefined])
      expect(await store.open(freshKey(), 600_000)).toBeUndefined()
      expect(await store.has(key, 999)).toBe(false)

      const elsewhere = await reopen()
      await elsewhere.claim('another', { mayBeNew: false, formerOwner: 'one' })

      // All at once: one that is awaited late would count as an unhandled rejection.
      const errors = await Promise.all(readings(999).map((reading) => errorOf(reading)))
      for (const error of errors) expect(error).toBeInstanceOf(Unavailable)
      expect(await errorOf(store.open(freshKey(), 600_000))).toBeInstanceOf(Unavailable)
      expect(await errorOf(store.has(key, 999))).toBeInstanceOf(Unavailable)
      expect(await readAll(await store.open(key, 1_000))).toEqual(bytes)
      expect(await elsewhere.open(key, 999)).toBeUndefined()
    })

    test('spoils an upload whose acknowledged bytes are lost, unless the store is not the one that was claimed', async () => {
      const { store, reopen } = await open()
      await store.claim('one', { mayBeNew: true })
      const key = freshKey()
      const upload = await append(store, key, emptyObject, generatedBytes(1_000))
      await store.remove(key, undefined)

      expect(await errorOf(append(store, key, upload, generatedBytes(1_000)))).toBeInstanceOf(Spoiled)
      await (await reopen()).claim('another', { mayBeNew: false, formerOwner: 'one' })
      expect(await errorOf(append(store, key, upload, generatedBytes(1_000)))).toBeInstanceOf(Unavailable)
      expect((await Array.fromAsync(store.listOlderThan(0))).flat()).toEqual([])
    })
  })
}

function keepingOrder(open: () => Promise<OpenedBlobStore>): void {
  const bytes = generatedBytes(1_000)

  test('belongs to the first registry that claims it, until that registry hands it over', async () => {
    const { store, reopen } = await open()
    await storeWhole(store, bytes)

    const asNew = { mayBeNew: true }

    expect(await store.claim('one', { mayBeNew: false })).toBeUndefined()
    expect(await store.claim('one', asNew)).toBe('one')
    expect(await store.claim('one', { mayBeNew: false })).toBe('one')
    expect(await (await reopen()).claim('another', asNew)).toBe('one')
    expect(await store.claim('another', { ...asNew, formerOwner: 'somebody else' })).toBe('one')
    expect(await store.claim('another', { mayBeNew: false, formerOwner: 'one' })).toBe('another')
    expect(await (await reopen()).claim('one', asNew)).toBe('another')
  })

  test('lists what has been lying there long enough, and nothing that has not', async () => {
    const { store } = await open()
    const key = await storeWhole(store, bytes)
    await store.claim('one', { mayBeNew: true })
    // The clock of the system has to move on: an object of this millisecond is not older than 0 ms.
    await Bun.sleep(10)

    const listed = await Array.fromAsync(store.listOlderThan(0))
    expect(listed.flat()).toEqual([{ storageKey: key, openedFor: key.slice(0, 36) as StorageKey, notes: undefined }])
  })

  test('removes all that the writers of an unfinished upload have left, by the upload’s key', async () => {
    const { store } = await open()
    const key = freshKey()
    for (const size of [100, 6_000_000]) {
      const writer = await store.openWriter(key, emptyObject)
      await writer.write(generatedBytes(size))
      await writer.flush()
      await writer.close()
    }
    const bystander = await storeWhole(store, bytes)

    await store.remove(key, undefined)

    const listed = await Array.fromAsync(store.listOlderThan(0))
    expect(listed.flat().map(({ storageKey }) => storageKey)).toEqual([bystander])
  })
}

function removing(open: () => Promise<OpenedBlobStore>): void {
  test('removes objects, complete or not, and succeeds if there is nothing to remove', async () => {
    const { store } = await open()
    const [key, unfinished] = [await storeWhole(store, generatedBytes(100)), freshKey()]
    const { notes } = await append(store, unfinished, emptyObject, generatedBytes(100))

    for (let time = 0; time < 2; time += 1) {
      await store.remove(key, undefined)
      await store.remove(unfinished, notes)
    }
    await store.remove(freshKey(), undefined)

    expect([await store.open(key, 100), await store.open(unfinished, 100)]).toEqual([undefined, undefined])
  })

  test('lets a reader that has begun come to its end', async () => {
    const { store } = await open()
    const bytes = generatedBytes(3_000_000)
    const key = await storeWhole(store, bytes)
    const opened = await store.open(key, bytes.length)
    if (opened === undefined) throw new Error('nothing was opened')
    const reader = (opened instanceof Blob ? opened.stream() : opened).getReader()
    // A chunk is valid until the next one is requested.
    const chunks = [new Uint8Array((await reader.read()).value ?? [])]

    await store.remove(key, undefined)
    for (let next = await reader.read(); !next.done; next = await reader.read()) chunks.push(new Uint8Array(next.value))

    expect(new Uint8Array(Buffer.concat(chunks))).toEqual(bytes)
  })
}
