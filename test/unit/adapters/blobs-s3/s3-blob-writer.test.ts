// The requests of a writer to S3, and what it leaves behind, as the stub in this process records them.
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { S3BlobStore } from '../../../../src/adapters/blobs-s3/s3-blob-store.ts'
import { Spoiled, Unavailable } from '../../../../src/oci/errors.ts'
import { generatedBytes } from '../../../support/basics/generated-bytes.ts'
import { errorOf } from '../../../support/basics/outcomes.ts'
import { useTemporaryFolders } from '../../../support/basics/temporary-folders.ts'
import { openS3Store, s3StoreSettings } from '../../../support/s3/s3-store.ts'
import { startS3Stub } from '../../../support/s3/s3-stub.ts'
import { auditWrites, listThere } from '../../../support/s3-faults/s3-audit.ts'
import { startS3FaultProxy } from '../../../support/s3-faults/s3-fault-proxy.ts'
import { tinyPlan } from '../../../support/s3-faults/s3-world.ts'
import { append, complete, emptyObject, freshKey, readAll } from '../../../support/stores/stored-objects.ts'

const stub = startS3Stub({ partBytesMin: tinyPlan.minBytes })
const proxy = await startS3FaultProxy(stub.url)
const folder = useTemporaryFolders('writer')()
const kibi = 1024

let store: S3BlobStore
let heard = 0

function openStore(): S3BlobStore {
  const behindProxy = { ...stub, url: proxy.url }
  return openS3Store(s3StoreSettings(behindProxy, folder, { plan: tinyPlan, memoryBuffersMax: 3, triesMax: 2 }))
}

beforeEach(() => {
  store = openStore()
  heard = stub.requests().length
})
afterEach(async () => {
  proxy.clear()
  await store.close()
  expect(auditWrites(stub.requests())).toEqual([])
})
afterAll(async () => {
  await proxy.stop()
  await stub.stop()
})

/** What the stub was asked since the test began. */
function asked(): Readonly<Record<string, number>> {
  const requests = Map.groupBy(stub.requests().slice(heard), ({ operation }) => String(operation))
  return Object.fromEntries([...requests].map(([name, its]) => [name, its.length]))
}

async function names(): Promise<string[]> {
  return (await listThere(store)).map(({ storageKey, notes }) => (notes === undefined ? '' : 'upload ') + storageKey)
}

function joined(...chunks: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(chunks))
}

describe('what is asked of S3', () => {
  test.each([0, 1, 60 * kibi])('is one PUT for %d bytes', async (size) => {
    const bytes = generatedBytes(size)
    const { key } = await complete(store, freshKey(), emptyObject, bytes)

    expect(asked()).toEqual({ PutObject: 1 })
    expect(await readAll(await store.open(key, size))).toEqual(bytes)
  })

  test('is one PUT for a few bytes that come first and are closed afterwards, as docker does it', async () => {
    const [key, bytes] = [freshKey(), generatedBytes(1_000)]
    const { key: name, leftovers } = await complete(store, key, await append(store, key, emptyObject, bytes))

    expect(asked()).toEqual({ PutObject: 1 })
    expect(leftovers).toEqual([])
    expect(await readAll(await store.open(name, bytes.length))).toEqual(bytes)
  })

  test('is begin, parts, end and a look for a larger one', async () => {
    const bytes = generatedBytes(200 * kibi)
    const { key } = await complete(store, freshKey(), emptyObject, bytes)

    expect(asked()).toEqual({ CreateMultipartUpload: 1, UploadPart: 4, CompleteMultipartUpload: 1, HeadObject: 1 })
    expect(await readAll(await store.open(key, bytes.length))).toEqual(bytes)
  })

  test('is no more when it comes in chunks that are parts', async () => {
    const [key, bytes] = [freshKey(), generatedBytes(64 * kibi)]
    const first = await append(store, key, emptyObject, bytes)
    const second = await append(store, key, first, bytes)
    await complete(store, key, second)

    expect(asked()).toEqual({ CreateMultipartUpload: 1, UploadPart: 2, CompleteMultipartUpload: 1, HeadObject: 1 })
  })

  test('is a tail for what is no part yet, read once and removed when another stands in its place', async () => {
    const [key, bytes] = [freshKey(), generatedBytes(10 * kibi)]
    const first = await append(store, key, emptyObject, bytes)
    const second = await append(store, key, first, bytes)
    expect(asked()).toEqual({ PutObject: 2, GetObject: 1 })
    expect(await names()).toHaveLength(2)
    const { key: name, leftovers } = await complete(store, key, second, bytes)

    expect(asked()).toMatchObject({ PutObject: 3, GetObject: 2, DeleteObject: 1 })
    expect(leftovers).toHaveLength(1)
    expect((await names()).toSorted()).toEqual([name, ...leftovers.map((one) => one.storageKey)].toSorted())
    expect(await readAll(await store.open(name, 3 * bytes.length))).toEqual(joined(bytes, bytes, bytes))
    for (const one of leftovers) await store.remove(one.storageKey, one.notes)
    await store.remove(name, undefined)
  })
})

describe('a writer that goes back', () => {
  test('keeps the tail that it goes back to, whatever it has sent since', async () => {
    const [key, head] = [freshKey(), generatedBytes(10 * kibi, 1)]
    const writer = await store.openWriter(key, emptyObject)
    await writer.write(head)
    await writer.flush()
    await writer.write(generatedBytes(100 * kibi, 2))
    await writer.rollBack()
    const stands = await writer.flush()
    await writer.close()
    const tail = generatedBytes(50, 3)
    const next = await append(store, key, stands, tail)
    const { key: name, leftovers } = await complete(store, key, next)

    expect(leftovers.map((one) => one.storageKey)).not.toContain(name)
    expect(await readAll(await store.open(name, head.length + tail.length))).toEqual(joined(head, tail))
  })

  test.each([1_000, 200 * kibi])('to the beginning leaves nothing, of %d bytes', async (size) => {
    const before = await names()
    const writer = await store.openWriter(freshKey(), emptyObject)
    await writer.write(generatedBytes(size))
    await writer.rollBack()
    await writer.close()

    expect(await names()).toEqual(before)
  })

  test.each([1_000, 200 * kibi])('after the end leaves nothing, of %d bytes', async (size) => {
    const before = await names()
    const writer = await store.openWriter(freshKey(), emptyObject)
    await writer.write(generatedBytes(size))
    await writer.complete()
    await writer.rollBack()
    await writer.close()

    expect(await names()).toEqual(before)
  })
})

describe('whatever a client does', () => {
  const step = fc.oneof(
    fc.record({ act: fc.constant('write' as const), size: fc.constantFrom(1, 5_000, 32_767, 40_000, 65_536, 150_000) }),
    fc.record({ act: fc.constantFrom('flush' as const, 'rewind' as const, 'reopen' as const) }),
  )

  test('the object has the bytes that stand in the end, and nothing but it and its leftovers is there', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        const before = new Set(await names())
        const key = freshKey()
        let stands = emptyObject
        let [flushed, bytes] = [new Uint8Array(), new Uint8Array()] as Uint8Array[]
        let writer = await store.openWriter(key, stands)
        for (const [index, one] of steps.entries()) {
          if (one.act === 'write') {
            const chunk = generatedBytes(one.size, index)
            await writer.write(chunk)
            bytes = joined(bytes ?? new Uint8Array(), chunk)
          } else if (one.act === 'rewind') {
            await writer.rollBack()
            bytes = flushed
          } else {
            stands = await writer.flush()
            flushed = bytes
            expect(stands.sizeBytes).toBe(bytes?.length ?? 0)
            if (one.act === 'flush') continue
            await writer.close()
            writer = await store.openWriter(key, stands)
          }
        }
        const { key: name, leftovers } = await writer.complete()
        await writer.close()

        expect(await readAll(await store.open(name, bytes?.length ?? 0))).toEqual(bytes)
        const there = (await names()).filter((one) => !before.has(one)).toSorted()
        expect(there).toEqual([name, ...leftovers.map((one) => one.storageKey)].toSorted())
        await store.remove(key, undefined)
        expect((await names()).filter((one) => !before.has(one))).toEqual([])
      }),
      { numRuns: 150 },
    )
  })
})

describe('a writer that fails', () => {
  const tooMuch = generatedBytes(300 * kibi)

  test('at a part says so, and gives back its places', async () => {
    proxy.inject({ fault: '500', operation: 'UploadPart' })
    for (let round = 0; round < 5; round += 1) {
      const writer = await store.openWriter(freshKey(), emptyObject)
      expect(await errorOf(writer.write(tooMuch).then(() => writer.flush()))).toBeInstanceOf(Unavailable)
      expect(await errorOf(writer.write(tooMuch))).toBeInstanceOf(Unavailable)
      await writer.close()
      await writer.close()
    }
    proxy.clear()
    const { key } = await complete(store, freshKey(), emptyObject, tooMuch)

    expect(await readAll(await store.open(key, tooMuch.length))).toEqual(tooMuch)
  })

  test('at a tail that is gone says so, and gives back its places', async () => {
    const key = freshKey()
    const stands = await append(store, key, emptyObject, generatedBytes(60 * kibi))
    await store.remove(key, undefined)
    for (let round = 0; round < 5; round += 1) {
      const writer = await store.openWriter(key, stands)
      expect(await errorOf(writer.write(tooMuch))).toBeInstanceOf(Spoiled)
      await writer.close()
    }
    const { key: name } = await complete(store, freshKey(), emptyObject, tooMuch)

    expect(await readAll(await store.open(name, tooMuch.length))).toEqual(tooMuch)
  })

  test('is good again once it has gone back', async () => {
    const [key, head] = [freshKey(), generatedBytes(70 * kibi, 4)]
    const writer = await store.openWriter(key, await append(store, key, emptyObject, head))
    proxy.inject({ fault: '500', operation: 'UploadPart' })
    await errorOf(writer.write(tooMuch).then(() => writer.flush()))
    await writer.rollBack()
    proxy.clear()
    await writer.write(tooMuch)
    const { key: name } = await writer.complete()
    await writer.close()

    expect(await readAll(await store.open(name, head.length + tooMuch.length))).toEqual(joined(head, tooMuch))
  })
})

test('the check of written objects finds a name that is written twice', async () => {
  const request = { method: 'PUT', target: '/b/x', operation: 'PutObject' as const, headers: {}, status: 200 }
  const copy = { ...request, target: '/b/y', headers: { 'x-amz-copy-source': '/b/x' } }

  expect(auditWrites([request, request, copy])).toEqual(['/b/x was written 2 times', '/b/y is a copy'])
})
