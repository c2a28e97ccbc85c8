// The contract of the writers of every blob store: part of the contract in blob-store.ts.
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { BlobWriter } from '../../src/ports/blob-store.ts'
import { digestOf, digestOfChunks, generatedBytes, generatedChunks } from '../support/basics/generated-bytes.ts'
import { errorOf, outcomeOf } from '../support/basics/outcomes.ts'
import { MemoryBlobStore } from '../support/stores/memory-blob-store.ts'
import {
  complete,
  emptyObject,
  freshKey,
  type OpenedBlobStore,
  readAll,
  storeWhole,
} from '../support/stores/stored-objects.ts'

type Open = () => Promise<OpenedBlobStore>

function joined(...chunks: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(chunks))
}

const size = fc.constantFrom(0, 1, 5_000, 32_767, 40_000, 65_536, 150_000, 524_289)
const step = fc.oneof(
  fc.record({ act: fc.constant('write' as const), size }),
  // `abandon`: a writer flushes, but its request fails, and the next writer starts where the last request ended.
  fc.record({
    act: fc.constantFrom('flush', 'roll back', 'end the request', 'restart', 'abandon'),
    size: fc.constant(0),
  }),
)

/** Walks through the life of one upload. A naive model keeps the bytes that count. */
async function walk(opened: OpenedBlobStore, steps: readonly { readonly act: string; readonly size: number }[]) {
  const key = freshKey()
  let { store } = opened
  let bytes = new Uint8Array() as Uint8Array
  let [flushed, recorded] = [bytes, bytes]
  let state = emptyObject
  let writer = await store.openWriter(key, state)
  let hasAbandoned = false
  for (const [index, { act, size: chunkBytes }] of steps.entries()) {
    if (act === 'write') {
      const chunk = generatedBytes(chunkBytes, index)
      await writer.write(chunk)
      bytes = joined(bytes, chunk)
      continue
    }
    if (act === 'roll back') {
      await writer.rollBack()
      bytes = flushed
      continue
    }
    const stored = await writer.flush()
    expect(stored.sizeBytes).toBe(bytes.length)
    flushed = bytes
    if (act === 'flush') continue
    await writer.close()
    await writer.close()
    if (act === 'restart') store = await opened.reopen()
    if (act === 'abandon') hasAbandoned = true
    else [state, recorded] = [stored, bytes]
    writer = await store.openWriter(key, state)
    bytes = flushed = recorded
  }
  // Every second upload ends with a request that is rejected first: more bytes than a batch come, and are rolled back.
  if (steps.length % 2 === 1) {
    await writer.write(generatedBytes(600_000))
    await writer.rollBack()
    bytes = flushed
  }
  const { key: name, leftovers } = await writer.complete()
  await writer.close()

  expect(await readAll(await store.open(name, bytes.length))).toEqual(bytes)
  expect(await readAll(await (await opened.reopen()).open(name, bytes.length))).toEqual(bytes)
  // The clock has to move on: an object of this millisecond is not older than 0 ms.
  await Bun.sleep(10)
  const list = async () => (await Array.fromAsync(store.listOlderThan(0))).flat().map(({ storageKey }) => storageKey)
  const known = [name, ...leftovers.map(({ storageKey }) => storageKey)].toSorted()
  const listed = (await list()).toSorted()
  expect(leftovers.map(({ storageKey }) => storageKey)).not.toContain(name)
  expect(hasAbandoned ? listed.filter((one) => known.includes(one)) : listed).toEqual(known)
  await store.remove(key, undefined)
  if (name !== key) await store.remove(name, undefined)
  expect(await list()).toEqual([])
}

async function walkManyTimes(opened: OpenedBlobStore, numRuns: number): Promise<void> {
  const property = fc.asyncProperty(fc.array(step, { maxLength: 12 }), (steps) => walk(opened, steps))
  await fc.assert(property, { numRuns, endOnFailure: true })
}

export function writing(open: Open, walks: number): void {
  test('stores exactly the bytes that count, whatever the requests of an upload do', async () => {
    await walkManyTimes(await open(), walks)
  })

  test('refuses to continue behind the end of the stored bytes', async () => {
    const { store } = await open()
    const key = await storeWhole(store, generatedBytes(30_000))

    await errorOf(store.openWriter(key, { sizeBytes: 30_001, notes: undefined }))
  })

  test('keeps what flush acknowledged when the writer is closed with more in hand', async () => {
    const { store } = await open()
    const [key, head] = [freshKey(), generatedBytes(700_000)]
    const writer = await store.openWriter(key, emptyObject)
    await writer.write(head.slice())
    const state = await writer.flush()
    await writer.write(generatedBytes(30_000))
    await writer.close()

    const { key: name } = await complete(store, key, state)
    expect(await readAll(await store.open(name, head.length))).toEqual(head)
  })

  test('accepts very many very small chunks', async () => {
    const { store } = await open()
    const bytes = generatedBytes(50_000)
    const key = freshKey()
    const writer = await store.openWriter(key, emptyObject)

    for (let at = 0; at < bytes.length; at += 1) await writer.write(bytes.subarray(at, at + 1))
    const { key: name } = await writer.complete()
    await writer.close()

    expect(await readAll(await store.open(name, bytes.length))).toEqual(bytes)
  })

  test('accepts a long stream in two requests', async () => {
    const { store } = await open()
    const sizeBytes = 40_000_003
    const key = freshKey()
    let writer = await store.openWriter(key, emptyObject)
    for (const [index, chunk] of [...generatedChunks(sizeBytes, 100_001)].entries()) {
      await writer.write(chunk)
      if (index !== 250) continue
      const state = await writer.flush()
      await writer.close()
      writer = await store.openWriter(key, state)
    }
    const { key: name } = await writer.complete()
    await writer.close()

    const read = await readAll(await store.open(name, sizeBytes))
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

/** Writers with one fault, which the walk must find. */
const faults: Readonly<Record<string, (writer: BlobWriter) => Partial<BlobWriter>>> = {
  'does not roll back': () => ({ rollBack: async () => undefined }),
  'acknowledges fewer bytes than it has': (writer) => ({
    flush: async () => ({ ...(await writer.flush()), sizeBytes: 0 }),
  }),
  'loses a chunk': (writer) => ({
    write: async (chunk) => (chunk.length === 5_000 ? undefined : writer.write(chunk)),
  }),
}

export function writerControls(): void {
  test.each(Object.entries(faults))('the walk finds a writer that %s (control)', async (_, spoil) => {
    const store = new MemoryBlobStore()
    const openWriter = store.openWriter.bind(store)
    store.openWriter = async (...given) => {
      const writer = await openWriter(...given)
      return Object.assign(
        writer,
        spoil({ ...writer, flush: writer.flush.bind(writer), write: writer.write.bind(writer) }),
      )
    }
    expect(await outcomeOf(walkManyTimes({ store, reopen: async () => store }, 100))).toBe('refused')
  })
}
