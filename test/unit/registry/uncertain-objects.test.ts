import { describe, expect, test } from 'bun:test'
import { systemClock } from '../../../src/adapters/clock-system/system-clock.ts'
import { type LostBytes, Unavailable } from '../../../src/oci/errors.ts'
import type { BlobStore, BlobWriter, StorageKey } from '../../../src/ports/blob-store.ts'
import type { UploadOwner } from '../../../src/ports/uploads.ts'
import { UploadWriters } from '../../../src/registry/upload-writers.ts'
import { appendToUpload, finishUpload, startUpload, uploadAtOnce } from '../../../src/registry/uploads.ts'
import { digestOf, generatedBytes } from '../../support/basics/generated-bytes.ts'
import { errorOf } from '../../support/basics/outcomes.ts'
import { useTemporaryFolders } from '../../support/basics/temporary-folders.ts'
import { named } from '../../support/stores/metadata-rows.ts'
import { auditStores } from '../../support/stores/store-audit.ts'
import { bodyOf, collect, grow, openWorld, scopeOf, type World } from '../../support/stores/use-case-world.ts'

const temporaryFolder = useTemporaryFolders('uncertain')
const bytes = generatedBytes(1_000)
const digest = digestOf(bytes)

interface Ending {
  readonly complete: (writer: BlobWriter) => ReturnType<BlobWriter['complete']>
  readonly read?: () => AsyncIterable<Uint8Array>
}

/** A world whose writers end as they are told to, and the number of objects that were read in it. */
async function openEnding({ complete, read }: Ending) {
  const world = await openWorld(temporaryFolder())
  let reads = 0
  const blobs: Pick<BlobStore, 'openWriter' | 'read' | 'has'> = {
    has: (...asked) => world.blobs.has(...asked),
    async openWriter(key, from) {
      const writer = await world.blobs.openWriter(key, from)
      return new Proxy(writer, {
        get(target, name) {
          if (name === 'complete') return () => complete(target)
          const own: unknown = Reflect.get(target, name)
          return typeof own === 'function' ? own.bind(target) : own
        },
      })
    },
    async read(...asked) {
      reads += 1
      return read?.() ?? world.blobs.read(...asked)
    },
  }
  const push = async () => {
    const { id: accountId } = await world.metadata.accounts.ensure('acme')
    const owner = { accountId, repository: named('app'), subject: 'alice' }
    const body = Object.assign(new Blob([bytes]).stream(), { cancel: () => Promise.resolve() })
    const chunk = { body, first: undefined, lengthBytes: undefined }
    await uploadAtOnce({ ...world, blobs }, owner, digest, chunk)
    return world.metadata.blobs.find(owner, digest)
  }
  return { push, reads: () => reads }
}

const uncertain: Ending['complete'] = async (writer) => ({ ...(await writer.complete()), isCertain: false })

describe('an object of which it is not certain what it was made of', () => {
  test.each([
    ['is read before it is used', uncertain, 1],
    ['costs no reading where it is certain (control)', (writer: BlobWriter) => writer.complete(), 0],
  ])('%s', async (_, complete, count) => {
    const { push, reads } = await openEnding({ complete })

    expect([(await push())?.sizeBytes, reads()]).toEqual([bytes.length, count])
  })

  test('is refused when it has other bytes', async () => {
    const read = () => new Blob([generatedBytes(1_000, 2)]).stream()
    const { push } = await openEnding({ complete: uncertain, read })

    expect(await errorOf(push())).toMatchObject({ refusal: 'digest-mismatch' })
  })
})

describe('a push of what the account has already', () => {
  /** An object that is lost before any request has read it; `meanwhile` runs while the store is asked about it. */
  async function openLost(meanwhile: (world: World, owner: UploadOwner) => Promise<unknown>) {
    const world = await openWorld(temporaryFolder())
    const owner = { ...(await scopeOf(world)), subject: 'alice' }
    const asked: StorageKey[] = []
    const has: BlobStore['has'] = async (key, sizeBytes) => {
      asked.push(key)
      const isThere = await world.blobs.has(key, sizeBytes)
      if (asked.length === 1) await meanwhile(world, owner)
      return isThere
    }
    const told: LostBytes[] = []
    const blobs = {
      has,
      read: world.blobs.read.bind(world.blobs),
      openWriter: world.blobs.openWriter.bind(world.blobs),
    }
    const needs = { ...world, blobs, noteLoss: (lost: LostBytes) => told.push(lost) }
    await uploadAtOnce(needs, owner, digest, bodyOf(bytes))
    // The store is not asked about a new blob.
    expect(asked).toEqual([])
    const keyOf = async () => (await world.metadata.blobs.find(owner, digest))?.storageKey as StorageKey
    const lost = await keyOf()
    await world.blobs.remove(lost, undefined)
    const isWhole = async () => world.blobs.has(await keyOf(), bytes.length)
    return { world, owner, needs, asked, told, lost, keyOf, isWhole }
  }

  test('keeps its bytes when the store cannot be asked: the session stays, and the same request succeeds later', async () => {
    const { needs, owner, lost, told, keyOf, isWhole } = await openLost(() =>
      Promise.reject(new Unavailable('blob-store')),
    )
    const { id } = await startUpload(needs, owner, 'free')
    await appendToUpload(needs, owner, id, bodyOf(bytes))

    expect(await errorOf(finishUpload(needs, owner, id, digest, bodyOf()))).toBeInstanceOf(Unavailable)
    expect([await keyOf(), told]).toEqual([lost, []])
    await finishUpload(needs, owner, id, digest, bodyOf())

    expect(told).toEqual([{ repository: owner.repository, digest, storageKey: lost }])
    expect(await isWhole()).toBe(true)
  })

  test.each(['collected', 'replaced by another push'])(
    'that is %s while the store is asked ends whole',
    async (event) => {
      const { world, owner, needs, asked, told, lost, keyOf, isWhole } = await openLost(async (place, scope) => {
        if (event !== 'collected') return uploadAtOnce(place, scope, digest, bodyOf(bytes))
        grow(place)
        return collect(place)
      })

      await uploadAtOnce(needs, owner, digest, bodyOf(bytes))

      expect(await isWhole()).toBe(true)
      // The other push has told of the loss; of what is collected there is nothing to tell.
      expect(told).toEqual([])
      expect(asked).toEqual(event === 'collected' ? [lost] : [lost, await keyOf()])
      expect(await auditStores(world.dataDir)).toEqual([])
    },
  )
})

test('a digest that was kept for fewer bytes than are closed proves nothing', async () => {
  const world = await openWorld(temporaryFolder())
  const owner = { ...(await scopeOf(world)), subject: 'alice' }
  const { id } = await startUpload(world, owner, 'free')
  await appendToUpload(world, owner, id, bodyOf(bytes))
  const restarted = { ...world, writers: new UploadWriters(systemClock) }

  const error = await errorOf(finishUpload(restarted, owner, id, digest, bodyOf(generatedBytes(4, 2))))

  expect(error).toMatchObject({ refusal: 'digest-mismatch' })
  expect(await world.metadata.blobs.find(owner, digest)).toBeUndefined()
})
