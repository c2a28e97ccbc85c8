// Multipart uploads that the store ends behind our back, by a rule of the bucket or one of its own: what was acknowledged of
// them is gone, and the client has to hear that, not "come again" for as long as the session lasts.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { systemClock } from '../../src/adapters/clock-system/system-clock.ts'
import { Spoiled } from '../../src/oci/errors.ts'
import type { BlobWriter } from '../../src/ports/blob-store.ts'
import { UploadWriters } from '../../src/registry/upload-writers.ts'
import { appendToUpload, describeUpload, startUpload } from '../../src/registry/uploads.ts'
import { digestOf, generatedBytes } from '../support/basics/generated-bytes.ts'
import { errorOf } from '../support/basics/outcomes.ts'
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
import { startS3Stub } from '../support/s3/s3-stub.ts'
import { listThere } from '../support/s3-faults/s3-audit.ts'
import { startS3FaultProxy } from '../support/s3-faults/s3-fault-proxy.ts'
import { openS3World, type S3World, tinyPlan } from '../support/s3-faults/s3-world.ts'
import { damageMetadata } from '../support/stores/store-damage.ts'
import { bodyOf, openWorld, scopeOf } from '../support/stores/use-case-world.ts'

const kibi = 1024
const temporaryFolder = useTemporaryFolders('s3-ended')
const stub = startS3Stub({ partBytesMin: tinyPlan.minBytes })
const proxy = await startS3FaultProxy(stub.url)
const repository = 'ended/app'
const whole = generatedBytes(300 * kibi, 1)
const digest = digestOf(whole)

let world: S3World
let session = ''

beforeAll(async () => {
  world = await openS3World({ server: stub, url: proxy.url, dataDir: temporaryFolder(), store: { triesMax: 2 } })
})
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
  await world.stop()
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

/** A world for a use case. Its writers report, after `before` has run, that their upload can never be completed. */
async function openSpoiled(before: (dataDir: string) => void) {
  const inner = await openWorld(temporaryFolder())
  const blobs = {
    ...inner.blobs,
    open: inner.blobs.open.bind(inner.blobs),
    openWriter: async (...asked: Parameters<typeof inner.blobs.openWriter>): Promise<BlobWriter> => {
      const writer = await inner.blobs.openWriter(...asked)
      const write = async (): Promise<void> => {
        before(inner.dataDir)
        throw new Spoiled('the store has lost it')
      }
      const [flush, complete] = [() => writer.flush(), () => writer.complete()]
      return { write, flush, complete, rollBack: () => writer.rollBack(), close: () => writer.close() }
    },
  }
  const owner = { ...(await scopeOf(inner)), subject: 'alice' }
  const { id } = await startUpload(inner, owner, 'free')
  const spoiled = { ...inner, blobs, writers: new UploadWriters(systemClock) }
  const append = () => errorOf(appendToUpload(spoiled, owner, id, bodyOf(whole)))
  return { append, describe: () => describeUpload(inner, owner, id), close: () => inner.metadata.close() }
}

describe('a chunk of which the store says that nothing can become of it', () => {
  test('ends the session of the writer that has the turn', async () => {
    const { append, describe, close } = await openSpoiled(() => undefined)
    expect(await append()).toMatchObject({ refusal: 'upload-unknown' })
    expect(await errorOf(describe())).toMatchObject({ refusal: 'upload-unknown' })
    await close()
  })

  test('leaves it to the other writer where the turn was lost', async () => {
    const loseTurn = (dataDir: string) => damageMetadata(dataDir, 'UPDATE uploads SET epoch = epoch + 1')
    const { append, describe, close } = await openSpoiled(loseTurn)
    expect(await append()).toMatchObject({ refusal: 'upload-unknown' })
    expect(await describe()).toBe(0)
    await close()
  })
})
