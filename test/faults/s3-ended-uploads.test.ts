// Multipart uploads that the store ends behind our back, by a rule of the bucket or one of its own: what was acknowledged of
// them is gone, and the client has to hear that, not "come again" for as long as the session lasts.
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { systemClock } from '../../src/adapters/clock-system/system-clock.ts'
import { Spoiled } from '../../src/oci/errors.ts'
import type { BlobWriter } from '../../src/ports/blob-store.ts'
import { UploadWriters } from '../../src/registry/upload-writers.ts'
import { appendToUpload, describeUpload, startUpload } from '../../src/registry/uploads.ts'
import { digestOf, generatedBytes } from '../support/basics/generated-bytes.ts'
import { errorOf } from '../support/basics/outcomes.ts'
import { useRunning } from '../support/basics/running.ts'
import { useTemporaryFolders } from '../support/basics/temporary-folders.ts'
import {
  ask,
  checkBlob,
  completeUpload,
  expectStatus,
  finish,
  openSession,
  patch,
} from '../support/clients/registry-client.ts'
import { aroundCall, beforeCall } from '../support/clocks/gates.ts'
import { startS3Stub } from '../support/s3/s3-stub.ts'
import { listThere } from '../support/s3-faults/s3-audit.ts'
import { startS3FaultProxy } from '../support/s3-faults/s3-fault-proxy.ts'
import { openS3World, tinyPlan } from '../support/s3-faults/s3-world.ts'
import { damageMetadata } from '../support/stores/store-damage.ts'
import { bodyOf, openWorld, scopeOf } from '../support/stores/use-case-world.ts'

const kibi = 1024
const temporaryFolder = useTemporaryFolders('s3-ended')
const stub = startS3Stub({ partBytesMin: tinyPlan.minBytes })
const proxy = await startS3FaultProxy(stub.url)
const repository = 'ended/app'
const whole = generatedBytes(300 * kibi, 1)
const digest = digestOf(whole)

const world = useRunning(() =>
  openS3World({ server: stub, url: proxy.url, dataDir: temporaryFolder(), store: { triesMax: 2 } }),
)
let session = ''

beforeEach(async () => {
  session = await openSession(world, repository)
  await expectStatus(202, patch(world, session, whole.subarray(0, 100 * kibi)))
})
afterEach(async () => {
  proxy.clear()
  await ask(world, 'DELETE', session)
  await ask(world, 'DELETE', `/v2/${repository}/blobs/${digest}`)
  await world.collect(0)
  expect(await world.audit()).toEqual([])
  expect(await listThere(world.direct)).toEqual([])
})
afterAll(async () => {
  await proxy.stop()
  await stub.stop()
})

/** As `AbortIncompleteMultipartUpload` does it. */
async function endUploads(): Promise<void> {
  const begun = (await listThere(world.direct)).filter(({ notes }) => notes !== undefined)
  expect(begun).toHaveLength(1)
  for (const { storageKey, notes } of begun) await world.direct.remove(storageKey, notes)
}

async function expectOver(asked: Promise<Response>): Promise<void> {
  const answer = await asked
  expect([answer.status, await answer.text()]).toEqual([404, expect.stringContaining('BLOB_UPLOAD_UNKNOWN')])
  expect((await ask(world, 'GET', session)).status).toBe(404)
  const anew = await openSession(world, repository)
  await completeUpload(world, anew, whole)
  expect(await checkBlob(world, repository, digest)).toBe('whole')
}

describe('a session whose multipart upload the store has ended', () => {
  /** What was sent before the end, after it, and the request that is told. */
  const ends = [
    ['the closing request that brings the rest', 100, 100, 'PUT'],
    ['the closing request that brings nothing', 300, 300, 'PUT'],
    ['the chunk that brings a part', 100, 100, 'PATCH'],
    ['the closing request after a chunk that was no part', 100, 101, 'PUT'],
  ] as const
  test.each(ends)('is over at %s', async (_, before, after, method) => {
    const send = (from: number, to: number) => patch(world, session, whole.subarray(from * kibi, to * kibi))
    if (before > 100) await expectStatus(202, send(100, before))
    await endUploads()
    if (after > before) await expectStatus(202, send(before, after))
    await expectOver(
      method === 'PATCH' ? send(after, 300) : finish(world, session, digest, whole.subarray(after * kibi)),
    )
  })

  test('is not over as long as it is unknown whether an object is there', async () => {
    await endUploads()
    proxy.inject({ fault: '500', operation: 'HeadObject' })
    for (const asked of [
      () => patch(world, session, whole.subarray(100 * kibi)),
      () => finish(world, session, digest, whole.subarray(100 * kibi)),
    ]) {
      const answer = await asked()
      expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, expect.any(String)])
      expect((await ask(world, 'GET', session)).status).toBe(204)
    }
  })

  test('goes on where it has not (the control)', async () => {
    await expectStatus(202, patch(world, session, whole.subarray(100 * kibi, 200 * kibi)))
    await completeUpload(world, session, whole)
    expect(await checkBlob(world, repository, digest)).toBe('whole')
  })
})

// Where the writer still has the turn, the session ends: upload-endings.test.ts (appending, spoiled).
test('a chunk that the store can never complete leaves the session to another writer that has the turn now', async () => {
  const inner = await openWorld(temporaryFolder())
  const owner = { ...(await scopeOf(inner)), subject: 'alice' }
  const { id } = await startUpload(inner, owner, 'free')
  const blobs = aroundCall(inner.blobs, 'openWriter', async (call, values) =>
    beforeCall((await call(...values)) as BlobWriter, 'write', async () => {
      damageMetadata(inner.dataDir, 'UPDATE uploads SET epoch = epoch + 1')
      throw new Spoiled('the store has lost it')
    }),
  )
  const spoiled = { ...inner, blobs, writers: new UploadWriters(systemClock) }

  expect(await errorOf(appendToUpload(spoiled, owner, id, bodyOf(whole)))).toMatchObject({ refusal: 'upload-unknown' })
  expect(await describeUpload(inner, owner, id)).toBe(0)
  await inner.metadata.close()
})
