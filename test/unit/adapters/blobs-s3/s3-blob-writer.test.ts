// The requests of a writer to S3, and what it leaves behind, as the stub in this process records them. The contract of
// blob stores (test/contract/blob-writer.ts) checks the bytes.
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { readdirSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { S3BlobStore, S3BlobStoreSettings } from '../../../../src/adapters/blobs-s3/s3-blob-store.ts'
import { parseNotes } from '../../../../src/adapters/blobs-s3/upload-state.ts'
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

let settings: S3BlobStoreSettings
let store: S3BlobStore
let heard = 0

beforeEach(() => {
  settings = s3StoreSettings({ ...stub, url: proxy.url }, folder, { plan: tinyPlan, memoryBuffersMax: 3, triesMax: 2 })
  store = openS3Store(settings)
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

/** The number of requests of each operation since the test began. */
function requestCounts(): Readonly<Record<string, number>> {
  const requests = Map.groupBy(stub.requests().slice(heard), ({ operation }) => String(operation))
  return Object.fromEntries([...requests].map(([name, its]) => [name, its.length]))
}

async function names(): Promise<string[]> {
  return (await listThere(store)).map(({ storageKey, notes }) => (notes === undefined ? '' : 'upload ') + storageKey)
}

const multipart = (parts: number) => ({
  CreateMultipartUpload: 1,
  UploadPart: parts,
  CompleteMultipartUpload: 1,
  HeadObject: 1,
})

describe('an upload needs', () => {
  test.each([
    ['one PUT for nothing', [0], { PutObject: 1 }],
    ['one PUT for one byte', [1], { PutObject: 1 }],
    ['one PUT for less than a part', [60 * kibi], { PutObject: 1 }],
    ['one PUT if the last request brings no bytes, as docker sends it', [1_000, 0], { PutObject: 1 }],
    ['a HEAD after the completion of its parts', [200 * kibi], multipart(4)],
    ['no more if its chunks are parts', [64 * kibi, 64 * kibi, 0], multipart(2)],
    [
      'a tail for less than a part, which is read once and removed when it is replaced',
      [10 * kibi, 10 * kibi, 10 * kibi],
      { PutObject: 3, GetObject: 2, DeleteObject: 1 },
    ],
  ] as const)('%s', async (_, sizes, counts) => {
    const key = freshKey()
    let state = emptyObject
    for (const [at, size] of sizes.slice(0, -1).entries()) {
      state = await append(store, key, state, generatedBytes(size, at))
    }
    await complete(store, key, state, generatedBytes(sizes.at(-1) ?? 0, 9))
    expect(requestCounts()).toEqual(counts)
    await store.remove(key, undefined)
  })
})

test.each([1_000, 200 * kibi])(
  'a writer of %d bytes that rolls back leaves nothing, also after its end',
  async (size) => {
    for (const end of [async () => undefined, (writer: Writer) => writer.complete()]) {
      const writer = await store.openWriter(freshKey(), emptyObject)
      await writer.write(generatedBytes(size))
      await end(writer)
      await writer.rollBack()
      await writer.close()
      expect(await names()).toEqual([])
    }
  },
)

type Writer = Awaited<ReturnType<S3BlobStore['openWriter']>>

describe('a writer that fails', () => {
  const tooMuch = generatedBytes(300 * kibi)

  test('at a part or at a lost tail says so, and releases its places in memory', async () => {
    const key = freshKey()
    const state = await append(store, key, emptyObject, generatedBytes(60 * kibi))
    await store.remove(key, undefined)
    proxy.inject({ fault: '500', operation: 'UploadPart' })
    for (let round = 0; round < 5; round += 1) {
      const writer = await store.openWriter(freshKey(), emptyObject)
      expect(await errorOf(writer.write(tooMuch.slice()).then(() => writer.flush()))).toBeInstanceOf(Unavailable)
      expect(await errorOf(writer.write(tooMuch.slice()))).toBeInstanceOf(Unavailable)
      await writer.close()
      const spoiled = await store.openWriter(key, state)
      expect(await errorOf(spoiled.write(tooMuch.slice()))).toBeInstanceOf(Spoiled)
      await spoiled.close()
    }
    proxy.clear()
    const { key: name } = await complete(store, freshKey(), emptyObject, tooMuch)

    expect(await readAll(await store.open(name, tooMuch.length))).toEqual(tooMuch)
  })

  test('can be used again once it has rolled back', async () => {
    const [key, head] = [freshKey(), generatedBytes(70 * kibi, 4)]
    const writer = await store.openWriter(key, await append(store, key, emptyObject, head))
    proxy.inject({ fault: '500', operation: 'UploadPart' })
    await errorOf(writer.write(tooMuch.slice()).then(() => writer.flush()))
    await writer.rollBack()
    proxy.clear()
    await writer.write(tooMuch.slice())
    const { key: name } = await writer.complete()
    await writer.close()

    const whole = new Uint8Array(Buffer.concat([head, tooMuch]))
    expect(await readAll(await store.open(name, whole.length))).toEqual(whole)
  })
})

describe('a writer that is closed', () => {
  async function isDone(work: Promise<unknown>): Promise<boolean> {
    return Promise.race([work.then(() => true), Bun.sleep(100).then(() => false)])
  }

  test.each([
    ['the removal of old tails', 'DELETE'],
    ['a part that is no longer needed', 'partNumber=1&'],
  ])('does not wait for %s; the store does when it is closed', async (_, words) => {
    const holding = await startS3FaultProxy(stub.url)
    const behind = openS3Store({ ...settings, endpoint: holding.url })
    const key = freshKey()
    const once = await append(behind, key, emptyObject, generatedBytes(1_000, 0))
    const twice = await append(behind, key, once, generatedBytes(1_000, 1))
    const held = holding.hold((line) => line.includes(words))
    const writer = await behind.openWriter(key, twice)
    await writer.write(generatedBytes(70_000))
    await held.reached
    await writer.close()

    const closed = behind.close()
    expect(await isDone(closed)).toBe(false)
    await held.letGo()
    await closed
    await holding.stop()
  })

  test('keeps what was stored even if its file cannot be removed', async () => {
    const inFiles = openS3Store({ ...settings, plan: { ...tinyPlan, memoryMax: 0 } })
    const bytes = generatedBytes(1_000)
    const writer = await inFiles.openWriter(freshKey(), emptyObject)
    await writer.write(bytes)
    await writer.flush()
    for (const file of readdirSync(settings.spoolFolder)) unlinkSync(join(settings.spoolFolder, file))
    const { key } = await writer.complete()

    await writer.close()
    expect(await readAll(await inFiles.open(key, bytes.length))).toEqual(bytes)
    await inFiles.close()
  })
})

test.each([
  ['of one byte each', 200, () => 1, 200 * 10],
  ['of any size', 60, (round: number) => (round % 3 === 0 ? 1 : (round * 7_919) % 900), 60 * 31_000 * 0.2],
])(
  'small chunks %s are put into few tails, without sending the whole tail again with each',
  async (_, rounds, sizeOf, bytesMax) => {
    const key = freshKey()
    let whole = generatedBytes(31_000, 1)
    let state = await append(store, key, emptyObject, whole)
    let tailsMax = 0
    const before = stub.requests().length
    for (let round = 0; round < rounds; round += 1) {
      const bytes = generatedBytes(sizeOf(round), round + 2)
      state = await append(store, key, state, bytes)
      whole = new Uint8Array(Buffer.concat([whole, bytes]))
      const sizes = parseNotes(state.notes).tails.map((tail) => tail.sizeBytes)
      for (const [at, size] of sizes.entries()) expect(size).toBeGreaterThan(2 * (sizes[at + 1] ?? 0))
      tailsMax = Math.max(tailsMax, sizes.length)
    }
    const puts = stub
      .requests()
      .slice(before)
      .filter(({ operation }) => operation === 'PutObject')
    expect(puts.reduce((sum, { headers }) => sum + Number(headers['content-length']), 0)).toBeLessThan(bytesMax)
    expect(tailsMax).toBeGreaterThan(1)
    expect(tailsMax).toBeLessThanOrEqual(16)
    const { key: name } = await complete(store, key, state)
    expect(await readAll(await store.open(name, whole.length))).toEqual(whole)
  },
)

test('the check of written objects finds a name that is written twice (control)', async () => {
  const request = { method: 'PUT', target: '/b/x', operation: 'PutObject' as const, headers: {}, status: 200 }
  const copy = { ...request, target: '/b/y', headers: { 'x-amz-copy-source': '/b/x' } }

  expect(auditWrites([request, request, copy])).toEqual(['/b/x was written 2 times', '/b/y is a copy'])
})
