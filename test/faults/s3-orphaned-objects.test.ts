// The sweep finds the objects of writers that crashed before a row named them, and removes nothing else.
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'bun:test'
import type { StorageKey } from '../../src/ports/blob-store.ts'
import { sweepOrphans } from '../../src/registry/garbage.ts'
import { digestOf, generatedBytes } from '../support/basics/generated-bytes.ts'
import { useTemporaryFolders } from '../support/basics/temporary-folders.ts'
import {
  checkBlob,
  completeUpload,
  expectStatus,
  openSession,
  patch,
  pushBlob,
} from '../support/clients/registry-client.ts'
import { startS3Stub } from '../support/s3/s3-stub.ts'
import { auditWrites, listThere } from '../support/s3-faults/s3-audit.ts'
import { openS3World, type S3World, tinyPlan } from '../support/s3-faults/s3-world.ts'
import { emptyObject, freshKey } from '../support/stores/stored-objects.ts'

const kibi = 1024
const hourMs = 3_600_000
const temporaryFolder = useTemporaryFolders('s3-orphaned-objects')
// Short pages: what stands on the second one is looked for as well.
const stub = startS3Stub({ partBytesMin: tinyPlan.minBytes, pageSize: 2 })
const repository = 'strays/app'
let world: S3World

beforeEach(async () => {
  world = await openS3World({ server: stub, dataDir: temporaryFolder() })
})
afterEach(() => world.stop())
afterAll(() => stub.stop())

/** A writer whose process ends at this point, so that its objects are not recorded. */
async function crash(
  size: number,
  at: 'writing' | 'flushed' | 'complete',
  key: StorageKey = freshKey(),
): Promise<void> {
  const writer = await world.blobs.openWriter(key, emptyObject)
  await writer.write(generatedBytes(size, size))
  if (at === 'flushed') await writer.flush()
  if (at === 'complete') await writer.complete()
  await writer.close()
}

async function kinds(): Promise<string[]> {
  return (await listThere(world.direct)).map(({ notes }) => (notes === undefined ? 'object' : 'upload')).toSorted()
}

describe('the sweep', () => {
  test('finds everything that crashed writers have left', async () => {
    await crash(10 * kibi, 'flushed')
    await crash(10 * kibi, 'complete')
    await crash(200 * kibi, 'writing')
    await crash(150 * kibi, 'flushed')
    await crash(200 * kibi, 'complete')
    // The third has sent its full pieces, and the fourth its tail besides.
    expect(await kinds()).toEqual(['object', 'object', 'object', 'object', 'upload', 'upload'])
    expect(await world.audit()).toHaveLength(6)
    expect(await world.sweep()).toBe(6)

    expect(await kinds()).toEqual([])
    expect(await world.audit()).toEqual([])
  })

  test('removes no blob, nothing that an open upload needs, and nothing in the trash', async () => {
    const blobs = [generatedBytes(10 * kibi, 1), generatedBytes(200 * kibi, 2)]
    for (const bytes of blobs) await pushBlob(world, repository, bytes)
    const whole = generatedBytes(220 * kibi, 3)
    const session = await openSession(world, repository)
    await expectStatus(202, patch(world, session, whole.subarray(0, 150 * kibi)))
    await expectStatus(202, patch(world, session, whole.subarray(150 * kibi, 170 * kibi)))
    const there = await listThere(world.direct)

    expect(await sweepOrphans(world, 0)).toBe(0)
    expect(await listThere(world.direct)).toEqual(there)
    await completeUpload(world, session, whole)
    for (const bytes of [...blobs, whole]) {
      expect(await checkBlob(world, repository, digestOf(bytes))).toBe('whole')
    }
    expect(await sweepOrphans(world, 0)).toBe(0)
    await world.collect()
    expect(await kinds()).toEqual(['object', 'object', 'object'])
    expect(await world.audit()).toEqual([])
  })

  test('removes nothing that is young by the clock of the store', async () => {
    await crash(10 * kibi, 'complete')
    await crash(200 * kibi, 'writing')

    expect(await sweepOrphans(world, hourMs)).toBe(0)
    stub.moveClock(2 * hourMs)
    expect(await sweepOrphans(world, hourMs)).toBe(2)
    expect(await sweepOrphans(world, hourMs)).toBe(0)
    await world.collect()
    expect(await kinds()).toEqual([])
    stub.moveClock(-2 * hourMs)
  })

  test('removes no other objects in the same bucket or below the same prefix', async () => {
    const key = freshKey()
    const others = [
      'somebody/else',
      `${world.prefix}notes.txt`,
      `${world.prefix}inner/${key.slice(-2)}/${key}`,
      `another/${key.slice(-2)}/${key}`,
    ]
    for (const name of others) stub.plant(name, generatedBytes(10, 1))
    await crash(10 * kibi, 'complete', key)
    expect(await world.sweep()).toBe(1)

    expect([...stub.objects().keys()].filter((name) => others.includes(name)).toSorted()).toEqual(others.toSorted())
    for (const name of others) stub.plant(name, undefined)
  })
})

test('no name was written twice in all of this, and nothing was copied', () => {
  expect(auditWrites(stub.requests())).toEqual([])
  expect(stub.requests().length).toBeGreaterThan(50)
})
