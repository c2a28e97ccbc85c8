// Writers that have lost their turn, and whose requests to S3 are carried out long after those of another writer.
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'bun:test'
import type { S3BlobStore, S3BlobStoreSettings } from '../../src/adapters/blobs-s3/s3-blob-store.ts'
import { systemClock } from '../../src/adapters/clock-system/system-clock.ts'
import type { Digest } from '../../src/oci/digest.ts'
import { RegistryRefusal, Unavailable } from '../../src/oci/errors.ts'
import type { UploadId, UploadOwner } from '../../src/ports/uploads.ts'
import { openBlob } from '../../src/registry/blobs.ts'
import { sweepOrphans } from '../../src/registry/garbage.ts'
import { UploadWriters } from '../../src/registry/upload-writers.ts'
import { appendToUpload, finishUpload, startUpload } from '../../src/registry/uploads.ts'
import { digestOf, generatedBytes } from '../support/basics/generated-bytes.ts'
import { errorOf } from '../support/basics/outcomes.ts'
import { useTemporaryFolders } from '../support/basics/temporary-folders.ts'
import { type HoldingProxy, startHoldingProxy } from '../support/clocks/holding-proxy.ts'
import { openS3Store, s3StoreSettings } from '../support/s3/s3-store.ts'
import { startS3Stub } from '../support/s3/s3-stub.ts'
import { auditObjects, auditPromises, listThere } from '../support/s3-faults/s3-audit.ts'
import { tinyPlan } from '../support/s3-faults/s3-world.ts'
import { damageMetadata } from '../support/stores/store-damage.ts'
import { readAll } from '../support/stores/stored-objects.ts'
import { bodyOf, collect, openWorld, scopeOf, type World } from '../support/stores/use-case-world.ts'

const kibi = 1024
const temporaryFolder = useTemporaryFolders('s3-late-requests')
const stub = startS3Stub({ partBytesMin: tinyPlan.minBytes })
const opened: S3BlobStore[] = []

/** Two replicas on one pair of stores; only the first one's requests can be held. */
let zombie: World
let other: World
let proxy: HoldingProxy
let owner: UploadOwner
let id: UploadId

beforeEach(async () => {
  proxy = await startHoldingProxy(stub.url)
  const dataDir = temporaryFolder()
  const settings = s3StoreSettings(stub, dataDir, { plan: tinyPlan, triesMax: 1 })
  const open = (more: Partial<S3BlobStoreSettings>): S3BlobStore => {
    const store = openS3Store({ ...settings, ...more })
    opened.push(store)
    return store
  }
  other = { ...(await openWorld(dataDir)), blobs: open({}) }
  zombie = { ...other, writers: new UploadWriters(systemClock), blobs: open({ endpoint: proxy.url }) }
  owner = { ...(await scopeOf(other)), subject: 'alice' }
  id = (await startUpload(other, owner, 'free')).id
})
afterEach(async () => {
  await proxy.stop()
  await other.metadata.close()
  for (const store of opened.splice(0)) await store.close()
})
afterAll(() => stub.stop())

/** Its half minute is over, and no answer has come. */
function loseTurn(): void {
  damageMetadata(other.dataDir, 'UPDATE uploads SET turn_until = 0')
}

async function servedAs(digest: Digest): Promise<Uint8Array | undefined> {
  return readAll(await (await openBlob(other, owner, digest)).open())
}

/** What was acknowledged is there to the byte; and what is left over is found, and nothing else. */
async function expectSound(bytes: Uint8Array): Promise<void> {
  expect(await servedAs(digestOf(bytes))).toEqual(bytes)
  expect(await auditPromises(other.dataDir, other.blobs)).toEqual([])
  await sweepOrphans(other, 0)
  await collect(other, { uploadDoneMs: 0 })
  expect(await servedAs(digestOf(bytes))).toEqual(bytes)
  expect(await auditObjects(other.dataDir, other.blobs)).toEqual([])
}

const isPut = (line: string) => line.startsWith('PUT') && !line.includes('partNumber')
const isPart = (number: number) => (line: string) => line.startsWith('PUT') && line.includes(`partNumber=${number}&`)
const isComplete = (line: string) => line.startsWith('POST') && line.includes('uploadId=')
const small = generatedBytes(10 * kibi, 1)
const large = generatedBytes(200 * kibi, 2)

async function append(world: World, bytes: Uint8Array): Promise<void> {
  await appendToUpload(world, owner, id, bodyOf(bytes))
}

async function finish(world: World, whole: Uint8Array, rest = whole): Promise<void> {
  await finishUpload(world, owner, id, digestOf(whole), bodyOf(rest))
}

describe('a late request, after another writer was acknowledged,', () => {
  test('that is a PUT changes nothing', async () => {
    const held = proxy.hold(isPut)
    const late = errorOf(finish(zombie, small))
    await held.reached
    loseTurn()
    await finish(other, small)
    await held.letGo()

    expect(await late).toMatchObject({ refusal: 'upload-unknown' })
    await expectSound(small)
  })

  test('that is a tail changes nothing', async () => {
    const held = proxy.hold(isPut)
    const late = errorOf(append(zombie, small))
    await held.reached
    loseTurn()
    await append(other, small.subarray(0, 5_000))
    await finish(other, small, small.subarray(5_000))
    await held.letGo()

    expect(await late).toBeInstanceOf(RegistryRefusal)
    await expectSound(small)
  })

  test('that is a part of its own upload changes nothing', async () => {
    const held = proxy.hold(isPart(2))
    const late = errorOf(append(zombie, large))
    await held.reached
    loseTurn()
    await finish(other, large)
    await held.letGo()

    expect(await late).toBeInstanceOf(RegistryRefusal)
    await expectSound(large)
  })

  test('that is a part of the same upload changes nothing', async () => {
    await append(other, large.subarray(0, 100 * kibi))
    const held = proxy.hold(isPart(3))
    const late = errorOf(append(zombie, large.subarray(100 * kibi)))
    await held.reached
    loseTurn()
    await finish(other, large, large.subarray(100 * kibi))
    await held.letGo()

    expect(await late).toBeInstanceOf(Error)
    await expectSound(large)
  })

  test('that is a completion changes nothing', async () => {
    await append(other, large.subarray(0, 100 * kibi))
    const held = proxy.hold(isComplete)
    const late = errorOf(finish(zombie, large, large.subarray(100 * kibi)))
    await held.reached
    loseTurn()
    await finish(other, large, large.subarray(100 * kibi))
    await held.letGo()

    expect(await late).toMatchObject({ refusal: 'upload-unknown' })
    await expectSound(large)
  })

  test('that is a completion of its own upload changes nothing', async () => {
    const held = proxy.hold(isComplete)
    const late = errorOf(finish(zombie, large))
    await held.reached
    loseTurn()
    await finish(other, large)
    await held.letGo()

    expect(await late).toMatchObject({ refusal: 'upload-unknown' })
    await expectSound(large)
  })
})

describe('a late request, before the other writer ends,', () => {
  test('that is a part of other bytes: nothing false is acknowledged, and a new session works', async () => {
    await append(other, large.subarray(0, 100 * kibi))
    const held = proxy.hold(isPart(3))
    const late = errorOf(append(zombie, large.subarray(100 * kibi)))
    await held.reached
    loseTurn()
    // Cut where the zombie did not cut: its part of this number is a longer one.
    await append(other, large.subarray(100 * kibi, 140 * kibi))
    await held.letGo()
    await late

    expect(await errorOf(finish(other, large, large.subarray(140 * kibi)))).toBeInstanceOf(Error)
    expect(await errorOf(servedAs(digestOf(large)))).toMatchObject({ refusal: 'blob-unknown' })
    id = (await startUpload(other, owner, 'free')).id
    await finish(other, large)
    damageMetadata(other.dataDir, 'UPDATE uploads SET turn_until = 0, touched_at = 0, created_at = 0')
    await expectSound(large)
  })

  test('that is a completion which S3 rejects leaves the session to the other writer', async () => {
    await append(other, large.subarray(0, 100 * kibi))
    const held = proxy.hold(isComplete)
    const late = errorOf(finish(zombie, large, large.subarray(100 * kibi)))
    await held.reached
    loseTurn()
    // Cut elsewhere: the parts that the zombie names are others now.
    await append(other, large.subarray(100 * kibi, 140 * kibi))
    await held.letGo()

    expect(await late).toBeInstanceOf(RegistryRefusal)
    await finish(other, large, large.subarray(140 * kibi))
    await expectSound(large)
  })

  test('that is a completion of other bytes: nothing false is acknowledged, and a new session works', async () => {
    const forged = new Uint8Array(large)
    forged.fill(7, 150 * kibi)
    await append(other, large.subarray(0, 100 * kibi))
    const held = proxy.hold(isComplete)
    const late = errorOf(finish(zombie, forged, forged.subarray(100 * kibi)))
    await held.reached
    loseTurn()
    await append(other, new Uint8Array())
    await held.letGo()
    await late

    // Of the same size: without reading the object, it cannot be distinguished from the right one.
    expect(await errorOf(finish(other, large, large.subarray(100 * kibi)))).toBeInstanceOf(Unavailable)
    expect(await errorOf(servedAs(digestOf(large)))).toMatchObject({ refusal: 'blob-unknown' })
    id = (await startUpload(other, owner, 'free')).id
    await finish(other, large)
    damageMetadata(other.dataDir, 'UPDATE uploads SET turn_until = 0, touched_at = 0, created_at = 0')
    await expectSound(large)
  })
})

describe('a request that has timed out', () => {
  test.each([
    ['PUT', isPut, small],
    ['Complete', isComplete, large],
  ] as const)('and is carried out at last leaves an orphaned object, when it is a %s', async (_, matches, bytes) => {
    const impatient = openS3Store({
      ...s3StoreSettings(stub, other.dataDir, { plan: tinyPlan, triesMax: 1, attemptTimeoutMs: 100 }),
      endpoint: proxy.url,
      prefix: 'given-up/',
    })
    opened.push(impatient)
    const held = proxy.hold(matches)
    const late = errorOf(finish({ ...zombie, blobs: impatient }, bytes))
    await held.reached
    expect(await late).toBeInstanceOf(Unavailable)
    await held.letGo()

    const strays = await listThere(impatient)
    // An upload that was aborted before its Complete came has nothing left to complete.
    expect(strays).toHaveLength(bytes === small ? 1 : 0)
    for (const { openedFor } of strays) await impatient.remove(openedFor, undefined)
    expect(await listThere(impatient)).toEqual([])
  })
})
