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
import { openS3Store, s3StoreSettings } from '../support/s3/s3-store.ts'
import { startS3Stub } from '../support/s3/s3-stub.ts'
import { auditObjects, auditPromises, listThere } from '../support/s3-faults/s3-audit.ts'
import { type S3FaultProxy, startS3FaultProxy } from '../support/s3-faults/s3-fault-proxy.ts'
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
let proxy: S3FaultProxy
let owner: UploadOwner
let id: UploadId

beforeEach(async () => {
  proxy = await startS3FaultProxy(stub.url)
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

interface Interleaving {
  readonly name: string
  /** So many bytes of the upload are there before. */
  readonly before: number
  readonly whole: Uint8Array
  readonly held: (line: string) => boolean
  /** The zombie only appends what follows; otherwise it closes the upload with it. */
  readonly isAppended?: true
  /** Where the other writer cuts the rest; undefined where its closing request has all of the rest. */
  readonly otherAppends?: number
}

/** The other writer has closed the upload before the held request is carried out. */
const afterTheEnd: readonly Interleaving[] = [
  { name: 'a PUT', before: 0, whole: small, held: isPut },
  { name: 'a tail', before: 0, whole: small, held: isPut, isAppended: true, otherAppends: 5_000 },
  { name: 'a part of its own upload', before: 0, whole: large, held: isPart(2), isAppended: true },
  { name: 'a part of the same upload', before: 100 * kibi, whole: large, held: isPart(3), isAppended: true },
  { name: 'a completion', before: 100 * kibi, whole: large, held: isComplete },
  { name: 'a completion of its own upload', before: 0, whole: large, held: isComplete },
]

/** The zombie's request is held at S3, its turn expires, and it is over before `act` begins. Resolves with its error. */
async function holdZombie(
  { before, whole, held, isAppended }: Interleaving,
  act: () => Promise<void>,
): Promise<unknown> {
  if (before > 0) await append(other, whole.subarray(0, before))
  const hold = proxy.hold(held)
  const rest = whole.subarray(before)
  const late = errorOf(isAppended ? append(zombie, rest) : finish(zombie, whole, rest))
  await hold.reached
  loseTurn()
  await act()
  await hold.letGo()
  return late
}

test.each(afterTheEnd)(
  '$name that is carried out after another writer was acknowledged changes nothing',
  async (one) => {
    const { before, whole, otherAppends = before } = one
    const error = await holdZombie(one, async () => {
      if (otherAppends > before) await append(other, whole.subarray(before, otherAppends))
      await finish(other, whole, whole.subarray(otherAppends))
    })

    expect(error).toBeInstanceOf(Error)
    if (!one.isAppended) expect(error).toMatchObject({ refusal: 'upload-unknown' })
    await expectSound(whole)
  },
)

describe('before the other writer ends, a late request', () => {
  const ofLarge = (held: Interleaving['held'], isAppended?: true): Interleaving => {
    return { name: '', before: 100 * kibi, whole: large, held, ...(isAppended && { isAppended }) }
  }
  // Cut where the zombie did not cut.
  const appendOther = () => append(other, large.subarray(100 * kibi, 140 * kibi))

  /** Nothing false was acknowledged, and the bytes can be sent in a new session. */
  async function expectNewSession(from: number): Promise<void> {
    expect(await errorOf(finish(other, large, large.subarray(from)))).toBeInstanceOf(Error)
    expect(await errorOf(servedAs(digestOf(large)))).toMatchObject({ refusal: 'blob-unknown' })
    id = (await startUpload(other, owner, 'free')).id
    await finish(other, large)
    damageMetadata(other.dataDir, 'UPDATE uploads SET turn_until = 0, touched_at = 0, created_at = 0')
    await expectSound(large)
  }

  test('that is a part of other bytes: nothing false is acknowledged, and a new session works', async () => {
    await holdZombie(ofLarge(isPart(3), true), appendOther)
    await expectNewSession(140 * kibi)
  })

  test('that is a completion which S3 rejects leaves the session to the other writer', async () => {
    expect(await holdZombie(ofLarge(isComplete), appendOther)).toBeInstanceOf(RegistryRefusal)
    await finish(other, large, large.subarray(140 * kibi))
    await expectSound(large)
  })

  test('that is a completion of other bytes: nothing false is acknowledged, and a new session works', async () => {
    // Of the same size: without reading the object, it cannot be distinguished from the right one.
    const forged = new Uint8Array(large).fill(7, 150 * kibi)
    await holdZombie({ ...ofLarge(isComplete), whole: forged }, () => append(other, new Uint8Array()))
    await expectNewSession(100 * kibi)
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
