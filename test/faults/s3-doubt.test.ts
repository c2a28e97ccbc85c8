// Ends of an upload with an unknown result: at S3, or in the metadata after it. The client repeats its closing
// request, with the same bytes or none, and gets what it was promised.
import { afterAll, afterEach, describe, expect, test } from 'bun:test'
import { Unavailable } from '../../src/oci/errors.ts'
import type { MetadataStore } from '../../src/ports/metadata-store.ts'
import { digestOf, generatedBytes } from '../support/basics/generated-bytes.ts'
import { useRunning } from '../support/basics/running.ts'
import { useTemporaryFolders } from '../support/basics/temporary-folders.ts'
import {
  ask,
  checkBlob,
  expectStatus,
  finish,
  openSession,
  patch,
  receivedBytes,
} from '../support/clients/registry-client.ts'
import { afterCommit, before } from '../support/clocks/gates.ts'
import { startS3Stub } from '../support/s3/s3-stub.ts'
import { auditWrites } from '../support/s3-faults/s3-audit.ts'
import { startS3FaultProxy } from '../support/s3-faults/s3-fault-proxy.ts'
import type { FaultName } from '../support/s3-faults/s3-faults.ts'
import { openS3World, tinyPlan } from '../support/s3-faults/s3-world.ts'

const kibi = 1024
const temporaryFolder = useTemporaryFolders('s3-doubt')
const stub = startS3Stub({ partBytesMin: tinyPlan.minBytes })
const repository = 'doubt/app'
let seed = 0

/** How often a commit fails before, or after, it was done. */
const failing = { before: 0, after: 0 }

function breakable(metadata: MetadataStore): MetadataStore {
  const unavailable = () => new Unavailable('metadata-store', { cause: new Error('cut') })
  const unlucky = before(metadata, 'uploads', 'commit', async () => {
    failing.before -= 1
    if (failing.before >= 0) throw unavailable()
  })
  return afterCommit(unlucky, async () => {
    failing.after -= 1
    if (failing.after >= 0) throw unavailable()
  })
}

const proxy = useRunning(() => startS3FaultProxy(stub.url))
const world = useRunning(() => {
  const store = { attemptTimeoutMs: 200, triesMax: 2 }
  return openS3World({ server: stub, url: proxy.url, dataDir: temporaryFolder(), store, wrap: breakable })
})
afterEach(() => {
  proxy.clear()
  Object.assign(failing, { before: 0, after: 0 })
})
afterAll(() => stub.stop())

function freshBytes(size: number): Uint8Array {
  seed += 1
  return generatedBytes(size, seed)
}

/** So many bytes by PATCHes, the rest with the closing request. */
const shapes: readonly (readonly [shape: string, patches: readonly number[], last: number])[] = [
  ['a small blob, all before the end', [10_000], 0],
  ['a small blob, all with the end', [], 10_000],
  ['a small blob, in two', [5_000], 5_000],
  ['a large blob, all before the end', [200 * kibi], 0],
  ['a large blob, all with the end', [], 200 * kibi],
  ['a large blob, the last bytes with the end', [150 * kibi], 1_000],
  ['a large blob, many pieces with the end', [100 * kibi], 200 * kibi],
  ['a large blob of whole pieces', [128 * kibi], 0],
  ['chunks', [100 * kibi, 10_000, 50_000], 10_000],
]

async function begin(patches: readonly number[], whole: Uint8Array): Promise<{ session: string; at: number }> {
  const session = await openSession(world, repository)
  let at = 0
  for (const size of patches) {
    await expectStatus(202, patch(world, session, whole.subarray(at, at + size), at))
    at += size
  }
  return { session, at }
}

/** It is there to the byte, no name was written twice by two writers, and nothing is left that is not found. */
async function expectSound(whole: Uint8Array): Promise<void> {
  const digest = digestOf(whole)
  expect(await checkBlob(world, repository, digest)).toBe('whole')
  await world.sweep()
  expect(await world.audit()).toEqual([])
  expect(await checkBlob(world, repository, digest)).toBe('whole')
}

const sizeOf = (patches: readonly number[], last: number) => patches.reduce((sum, one) => sum + one, last)

/** An upload whose closing request has failed after S3 has done its part. */
async function failOnce(patches: readonly number[], last: number) {
  const whole = freshBytes(sizeOf(patches, last))
  const { session, at } = await begin(patches, whole)
  failing.before = 1
  await expectStatus(503, finish(world, session, digestOf(whole), whole.subarray(at)))
  return { whole, session, at }
}

describe.each(shapes)('%s: the commit', (_, patches, last) => {
  test.each([
    ['fails twice after S3 has done its part', 'before', 2],
    ['was done, and its answer is lost', 'after', 1],
  ] as const)('%s; the same closing request goes through', async (_, when, times) => {
    const whole = freshBytes(sizeOf(patches, last))
    const { session, at } = await begin(patches, whole)
    failing[when] = times
    for (let tries = 0; tries < times; tries += 1) {
      await expectStatus(503, finish(world, session, digestOf(whole), whole.subarray(at)))
      if (when === 'before') expect(await receivedBytes(world, session)).toBe(at)
    }
    await expectStatus(201, finish(world, session, digestOf(whole), whole.subarray(at)))

    await expectSound(whole)
  })

  test('fails, and the client sends what is missing by itself before it closes', async () => {
    const { whole, session, at } = await failOnce(patches, last)
    const half = at + Math.floor((whole.length - at) / 2)
    await expectStatus(202, patch(world, session, whole.subarray(at, half)))
    await expectStatus(202, patch(world, session, whole.subarray(half)))
    await expectStatus(201, finish(world, session, digestOf(whole)))

    await expectSound(whole)
  })

  test('fails, and the client gives the upload up', async () => {
    const { session } = await failOnce(patches, last)
    await expectStatus(204, ask(world, 'DELETE', session))
    await world.collect()

    expect(await world.audit()).toEqual([])
  })
})

const doubts: readonly FaultName[] = [
  '500 after effect',
  'reset after effect',
  'timeout after effect',
  '200 with error after effect',
  'end mid-response-body',
]
const largeShapes = shapes.filter(([, patches, last]) => sizeOf(patches, last) > 100 * kibi)

describe.each(doubts)('a Complete that took effect and says %s', (fault) => {
  test.each(largeShapes)(
    '%s: is found by the next closing request when the look-up had failed',
    async (_, patches, last) => {
      const whole = freshBytes(sizeOf(patches, last))
      const { session, at } = await begin(patches, whole)
      const doubt = proxy.inject({ fault, operation: 'CompleteMultipartUpload', occurrence: 1 })
      proxy.inject({ fault: '500', operation: 'HeadObject' })
      await expectStatus(503, finish(world, session, digestOf(whole), whole.subarray(at)))
      expect(doubt.hits()).toBe(1)
      proxy.clear()
      await expectStatus(201, finish(world, session, digestOf(whole), whole.subarray(at)))

      await expectSound(whole)
    },
  )
})

describe('what stands at S3 already', () => {
  test('is never taken for other bytes, of the same size and under their own digest', async () => {
    const { whole, session, at } = await failOnce([120 * kibi], 30 * kibi)
    const other = new Uint8Array(whole).fill(1, 140 * kibi)
    await expectStatus(503, finish(world, session, digestOf(other), other.subarray(at)))
    expect(await checkBlob(world, repository, digestOf(other))).toBe('status 404')
    await expectStatus(201, finish(world, session, digestOf(whole), whole.subarray(at)))

    await expectSound(whole)
  })

  test('was written under each name once', () => {
    expect(auditWrites(stub.requests())).toEqual([])
  })
})
