// Where the bytes of an upload go: into its row while they are few, and into an object from then on.
import { describe, expect, test } from 'bun:test'
import { systemClock } from '../../../src/adapters/clock-system/system-clock.ts'
import { freeChunk } from '../../../src/lib/byte-source.ts'
import { RegistryRefusal, Unavailable } from '../../../src/oci/errors.ts'
import type { BlobStore, StorageKey, UnfinishedObject } from '../../../src/ports/blob-store.ts'
import type { Upload } from '../../../src/ports/uploads.ts'
import { openContentWriter } from '../../../src/registry/blob-content.ts'
import { generatedBytes } from '../../support/basics/generated-bytes.ts'
import { errorOf } from '../../support/basics/outcomes.ts'
import { MemoryBlobStore } from '../../support/stores/memory-blob-store.ts'
import { freshKey, readAll } from '../../support/stores/stored-objects.ts'

const inlineBytesMax = 100
const empty: UnfinishedObject = { sizeBytes: 0, notes: undefined }
const whole = generatedBytes(300)

interface World {
  readonly blobs: Pick<BlobStore, 'openWriter' | 'read'>
  readonly clock: typeof systemClock
  readonly disk: { isLow(): boolean }
  readonly settings: { readonly inlineBytesMax: number }
}

function openWorld(max = inlineBytesMax): World {
  return {
    blobs: new MemoryBlobStore(),
    clock: systemClock,
    disk: { isLow: () => false },
    settings: { inlineBytesMax: max },
  }
}

function uploadAt(object: UnfinishedObject, storageKey = freshKey()): Upload {
  return { storageKey, object } as Upload
}

async function append(world: World, upload: Upload, ...chunks: readonly Uint8Array[]): Promise<UnfinishedObject> {
  const writer = await openContentWriter(world, upload)
  for (const chunk of chunks) await writer.write(chunk)
  const object = await writer.flush()
  await writer.close()
  return object
}

/** Consecutive chunks of these sizes. */
function cut(sizes: readonly number[], from = 0): Uint8Array[] {
  const ends = sizes.map((_, at) => sizes.slice(0, at + 1).reduce((sum, size) => sum + size, from))
  return ends.map((end, at) => whole.subarray(end - (sizes[at] ?? 0), end))
}

async function objectAt({ blobs }: World, key: StorageKey, sizeBytes: number): Promise<Uint8Array | undefined> {
  return readAll(await blobs.read(key, sizeBytes))
}

describe('an upload of few bytes', () => {
  test.each([
    ['no chunk', []],
    ['one chunk', [100]],
    ['many chunks', Array.from({ length: 100 }, () => 1)],
    ['chunks of different sizes', [1, 60, 0, 39]],
  ])('keeps %s inline, and opens no object', async (_, sizes) => {
    const world = openWorld()
    const upload = uploadAt(empty)
    const chunks = cut(sizes)
    const at = Buffer.concat(chunks).length

    const object = await append(world, upload, ...chunks)

    expect(object).toEqual({ sizeBytes: at, notes: undefined, inlineBytes: whole.slice(0, at) })
    expect(await objectAt(world, upload.storageKey, 0)).toBeUndefined()
  })

  test('continues with the bytes of its row, and completes with all of them', async () => {
    const world = openWorld()
    const upload = uploadAt({ ...empty, sizeBytes: 40, inlineBytes: whole.slice(0, 40) })
    const writer = await openContentWriter(world, upload)
    await writer.write(whole.slice(40, 100))

    const leftovers = [{ storageKey: upload.storageKey, notes: undefined }]
    const { key, ...rest } = await writer.complete()
    expect(rest).toEqual({ isCertain: true, leftovers, inlineBytes: whole.slice(0, 100) })
    expect(key).not.toBe(upload.storageKey)
  })

  test('is as before after a rollback', async () => {
    const before = whole.slice(0, 40)
    const writer = await openContentWriter(openWorld(), uploadAt({ ...empty, sizeBytes: 40, inlineBytes: before }))
    await writer.write(whole.slice(40, 60))
    await writer.rollBack()

    expect(await writer.flush()).toEqual({ sizeBytes: 40, notes: undefined, inlineBytes: before })
    expect(before).toEqual(whole.slice(0, 40))
  })

  test('is refused while the disk is low, and keeps what came before', async () => {
    let isLow = false
    const writer = await openContentWriter({ ...openWorld(), disk: { isLow: () => isLow } }, uploadAt(empty))
    await writer.write(whole.slice(0, 10))
    isLow = true
    const refusal = await errorOf(writer.write(whole.slice(10, 20)))

    expect(refusal).toBeInstanceOf(RegistryRefusal)
    expect(await writer.flush()).toMatchObject({ sizeBytes: 10, inlineBytes: whole.slice(0, 10) })
  })
})

describe('an upload that grows over the limit', () => {
  test.each([
    ['in one chunk', empty, [101]],
    ['by one byte', empty, [100, 1]],
    ['from the bytes of its row', { ...empty, sizeBytes: 40, inlineBytes: whole.slice(0, 40) }, [61]],
    ['in many chunks', empty, [50, 50, 50, 50]],
  ])('is an object with all bytes from then on: %s', async (_, from, sizes) => {
    const world = openWorld()
    const upload = uploadAt(from)
    const chunks = cut(sizes, from.sizeBytes)
    const at = from.sizeBytes + Buffer.concat(chunks).length

    const object = await append(world, upload, ...chunks)

    expect(object).toEqual({ sizeBytes: at, notes: undefined })
    expect(await objectAt(world, upload.storageKey, at)).toEqual(whole.slice(0, at))
    const grown = await append(world, { ...upload, object }, whole.subarray(at, at + 10))
    expect(grown).toEqual({ sizeBytes: at + 10, notes: undefined })
    expect(await objectAt(world, upload.storageKey, at + 10)).toEqual(whole.slice(0, at + 10))
  })

  test('is as before after a rollback, and can grow again', async () => {
    const world = openWorld()
    const upload = uploadAt({ ...empty, sizeBytes: 40, inlineBytes: whole.slice(0, 40) })
    const writer = await openContentWriter(world, upload)
    await writer.write(whole.slice(40, 200))
    await writer.rollBack()
    await writer.close()

    expect(await append(world, upload, whole.subarray(40, 150))).toEqual({ sizeBytes: 150, notes: undefined })
    expect(await objectAt(world, upload.storageKey, 150)).toEqual(whole.slice(0, 150))
  })

  test.each([
    ['cannot be opened', 'openWriter'],
    ['cannot be written', 'write'],
  ])('stays inline if the object %s', async (_, failing) => {
    const store = new MemoryBlobStore()
    const fail = () => Promise.reject(new Unavailable('blob-store'))
    const openWriter: BlobStore['openWriter'] = async (key, from) => {
      if (failing === 'openWriter') return fail()
      const writer = await store.openWriter(key, from)
      return Object.assign(Object.create(writer), {
        write: fail,
        rollBack: () => writer.rollBack(),
        close: () => writer.close(),
      })
    }
    const world = { ...openWorld(), blobs: { openWriter } }
    const writer = await openContentWriter(
      world,
      uploadAt({ ...empty, sizeBytes: 40, inlineBytes: whole.slice(0, 40) }),
    )

    expect(await errorOf(writer.write(whole.slice(40, 200)))).toBeInstanceOf(Unavailable)
    expect(await writer.flush()).toMatchObject({ sizeBytes: 40, inlineBytes: whole.slice(0, 40) })
  })
})

describe('where an upload continues', () => {
  test('it is an object if it already has one, however small', async () => {
    const world = openWorld()
    const upload = uploadAt(empty)
    const object = await append({ ...world, settings: { inlineBytesMax: 0 } }, upload, whole.subarray(0, 5))
    expect(object).toEqual({ sizeBytes: 5, notes: undefined })

    expect(await append(world, { ...upload, object }, whole.subarray(5, 10))).toEqual({
      sizeBytes: 10,
      notes: undefined,
    })
  })

  test.each([0, 50])('it stays inline with a lower limit of %d while nothing is appended', async (max) => {
    const inlineBytes = whole.slice(0, 80)
    const object = { ...empty, sizeBytes: 80, inlineBytes }

    expect(await append(openWorld(max), uploadAt(object))).toEqual(object)
    expect(await append(openWorld(max), uploadAt(object), whole.subarray(80, 81))).toEqual({
      sizeBytes: 81,
      notes: undefined,
    })
  })
})

test.each([
  ['a Buffer, as PostgreSQL returns it', Buffer.from(whole.slice(0, 90))],
  ['a Uint8Array', whole.slice(0, 90)],
])(
  'the bytes of the row stay when they are copied to an object whose writer frees them: %s',
  async (_, inlineBytes) => {
    const world = openWorld()
    const openWriter: BlobStore['openWriter'] = async (...where) => {
      const writer = await world.blobs.openWriter(...where)
      const write = async (chunk: Uint8Array) => {
        await writer.write(chunk.slice())
        freeChunk(chunk)
      }
      return {
        write,
        flush: () => writer.flush(),
        complete: () => writer.complete(),
        rollBack: () => writer.rollBack(),
        close: () => writer.close(),
      }
    }
    const upload = uploadAt({ sizeBytes: 90, notes: undefined, inlineBytes })

    await append({ ...world, blobs: { ...world.blobs, openWriter } }, upload, whole.slice(90, 200))

    expect(upload.object.inlineBytes).toHaveLength(90)
    expect(await objectAt(world, upload.storageKey, 200)).toEqual(whole.slice(0, 200))
  },
)
