// What a writer that is closed waits for, and what it does not: its client waits for the answer.
import { afterAll, afterEach, beforeEach, expect, test } from 'bun:test'
import { readdirSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { S3BlobStore, S3BlobStoreSettings } from '../../../../src/adapters/blobs-s3/s3-blob-store.ts'
import { generatedBytes } from '../../../support/basics/generated-bytes.ts'
import { useTemporaryFolders } from '../../../support/basics/temporary-folders.ts'
import { type HoldingProxy, startHoldingProxy } from '../../../support/clocks/holding-proxy.ts'
import { openS3Store, s3StoreSettings } from '../../../support/s3/s3-store.ts'
import { startS3Stub } from '../../../support/s3/s3-stub.ts'
import { listThere } from '../../../support/s3-faults/s3-audit.ts'
import { tinyPlan } from '../../../support/s3-faults/s3-world.ts'
import { append, emptyObject, freshKey, readAll } from '../../../support/stores/stored-objects.ts'

const stub = startS3Stub({ partBytesMin: tinyPlan.minBytes })
const temporaryFolder = useTemporaryFolders('closing')

let proxy: HoldingProxy
let settings: S3BlobStoreSettings
/** Past the proxy. */
let direct: S3BlobStore

beforeEach(async () => {
  proxy = await startHoldingProxy(stub.url)
  settings = s3StoreSettings(stub, temporaryFolder(), { plan: tinyPlan })
  direct = openS3Store(settings)
})
afterEach(async () => {
  await direct.close()
  await proxy.stop()
})
afterAll(() => stub.stop())

function openBehindProxy(): S3BlobStore {
  return openS3Store({ ...settings, endpoint: proxy.url })
}

/** Whether it is done by the time that all that could be done here was done. */
async function isDone(work: Promise<unknown>): Promise<boolean> {
  const done = work.then(() => true)
  return Promise.race([done, Bun.sleep(100).then(() => false)])
}

test('a writer does not wait for the removal of old tails; the store does, when it is closed', async () => {
  const store = openBehindProxy()
  const key = freshKey()
  const once = await append(store, key, emptyObject, generatedBytes(1_000, 0))
  const twice = await append(store, key, once, generatedBytes(1_000, 1))
  const held = proxy.hold((line) => line.startsWith('DELETE'))
  const writer = await store.openWriter(key, twice)
  const { key: name } = await writer.complete()
  await held.reached
  await writer.close()
  expect(await listThere(direct)).toHaveLength(2)

  const closed = store.close()
  expect(await isDone(closed)).toBe(false)
  await held.letGo()
  await closed
  expect((await listThere(direct)).map(({ storageKey }) => storageKey)).toEqual([name])
})

test('a writer does not wait for a part that is no longer needed; the store does, when it is closed', async () => {
  const store = openBehindProxy()
  const held = proxy.hold((line) => line.includes('partNumber=1&'))
  const writer = await store.openWriter(freshKey(), emptyObject)
  await writer.write(generatedBytes(70_000))
  await held.reached
  await writer.close()

  const closed = store.close()
  expect(await isDone(closed)).toBe(false)
  await held.letGo()
  await closed
})

test('a file that cannot be removed does not undo what was stored', async () => {
  const store = openS3Store({ ...settings, plan: { ...tinyPlan, memoryMax: 0 } })
  const bytes = generatedBytes(1_000)
  const writer = await store.openWriter(freshKey(), emptyObject)
  await writer.write(bytes)
  await writer.flush()
  for (const file of readdirSync(settings.spoolFolder)) unlinkSync(join(settings.spoolFolder, file))
  const { key } = await writer.complete()

  await writer.close()
  expect(await readAll(await store.open(key, bytes.length))).toEqual(bytes)
  await store.close()
})
