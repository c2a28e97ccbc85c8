// The collector and the closing of uploads die at every step: what is done again comes to a good end.
import { afterAll, describe, expect, test } from 'bun:test'
import type { BlobStore } from '../../src/ports/blob-store.ts'
import type { MetadataStore } from '../../src/ports/metadata-store.ts'
import { appendToUpload, describeUpload, finishUpload, startUpload } from '../../src/registry/uploads.ts'
import { digestOf } from '../support/basics/generated-bytes.ts'
import { errorOf } from '../support/basics/outcomes.ts'
import { useTemporaryFolders } from '../support/basics/temporary-folders.ts'
import { after, afterCommit, before, crash, Gate, SimulatedCrash } from '../support/clocks/gates.ts'
import { bodyOf, collect, grow, openWorld, pull, scopeOf, upload, type World } from '../support/stores/deed-world.ts'
import { auditStores, countRows, listFiles } from '../support/stores/store-audit.ts'

const temporaryFolder = useTemporaryFolders('crashes')
const worlds: World[] = []

afterAll(async () => {
  for (const world of worlds) await world.metadata.close()
})

async function open() {
  const world = await openWorld(temporaryFolder())
  worlds.push(world)
  return { world, scope: await scopeOf(world) }
}

/** The same blob store, where one step fails. */
function failing(blobs: BlobStore, step: 'remove' | 'after remove'): BlobStore {
  return Object.assign(Object.create(blobs), {
    openWriter: blobs.openWriter.bind(blobs),
    open: blobs.open.bind(blobs),
    async remove(...values: Parameters<BlobStore['remove']>) {
      if (step === 'after remove') await blobs.remove(...values)
      throw new SimulatedCrash()
    },
  })
}

describe('I10, I11: the collector dies', () => {
  const steps: Record<string, (world: World) => Pick<World, 'metadata' | 'blobs'>> = {
    'after the lock': (world) => ({ ...world, metadata: after(world.metadata, 'garbage', 'lockNextDue', crash) }),
    'after the look': (world) => ({ ...world, metadata: after(world.metadata, 'garbage', 'isLive', crash) }),
    'before its end': (world) => ({ ...world, metadata: after(world.metadata, 'garbage', 'bury', crash) }),
    'after its end': (world) => ({ ...world, metadata: afterCommit(world.metadata, crash) }),
    'before the bytes are removed': (world) => ({ ...world, blobs: failing(world.blobs, 'remove') }),
    'after the bytes are removed': (world) => ({ ...world, blobs: failing(world.blobs, 'after remove') }),
    'before the bytes are forgotten': (world) => ({
      ...world,
      metadata: before(world.metadata, 'garbage', 'forget', crash),
    }),
  }

  test.each(Object.keys(steps))('%s: the stores are sound, and the next run finishes', async (step) => {
    const { world, scope } = await open()
    for (const text of ['one', 'two', 'three']) await upload(world, scope, text)
    grow(world)

    const broken = steps[step]?.(world) ?? world
    expect(await errorOf(collect(broken))).toBeInstanceOf(SimulatedCrash)
    expect(await auditStores(world.dataDir)).toEqual([])
    await collect(world)

    expect(listFiles(world.dataDir)).toEqual([])
    expect(countRows(world.dataDir, 'trash')).toBe(0)
    expect(await auditStores(world.dataDir)).toEqual([])
  })

  test('and several collectors at once disturb neither each other nor anybody else', async () => {
    const { world, scope } = await open()
    const texts = Array.from({ length: 30 }, (_, index) => `blob ${index}`)
    for (const text of texts) await upload(world, scope, text)
    grow(world)
    const digest = await upload(world, scope, 'blob 7')

    await Promise.all([collect(world), collect(world), collect(world)])

    expect(await pull(world, scope, digest)).toBe('blob 7')
    expect(listFiles(world.dataDir)).toHaveLength(1)
    expect(await auditStores(world.dataDir)).toEqual([])
  })
})

describe('I25: a session expires while it is written to', () => {
  const bytes = new TextEncoder().encode('the bytes')
  const noPatience = { uploadIdleMs: 0, uploadMaxMs: 0 }

  test('the writer has its turn: it wins', async () => {
    const { world, scope } = await open()
    const owner = { ...scope, subject: 'alice' }
    const { id } = await startUpload(world, owner, 'free')
    const gate = new Gate()
    const slow = { ...world, metadata: before(world.metadata, 'uploads', 'advance', gate.pass) }
    const appending = appendToUpload(slow, owner, id, bodyOf(bytes))
    await gate.reached

    await collect(world, noPatience)
    gate.open()

    expect(await appending).toBe(bytes.length)
    expect(await describeUpload(world, owner, id)).toBe(bytes.length)
  })

  test('the collector comes first: the writer is told that the session is gone', async () => {
    const { world, scope } = await open()
    const owner = { ...scope, subject: 'alice' }
    const { id } = await startUpload(world, owner, 'free')
    const gate = new Gate()
    const late = { ...world, metadata: before(world.metadata, 'uploads', 'claim', gate.pass) }
    const appending = appendToUpload(late, owner, id, bodyOf(bytes)).catch((error) => error.refusal)
    await gate.reached

    await collect(world, noPatience)
    gate.open()

    expect(await appending).toBe('upload-unknown')
    expect(listFiles(world.dataDir)).toEqual([])
    expect(await auditStores(world.dataDir)).toEqual([])
  })
})

describe('I26: the closing of an upload dies', () => {
  const bytes = new TextEncoder().encode('all of it')
  const digest = digestOf(bytes)
  const steps: Record<string, (metadata: MetadataStore) => MetadataStore> = {
    'before the session is finished': (metadata) => before(metadata, 'uploads', 'finish', crash),
    'before the blob is inserted': (metadata) => before(metadata, 'blobs', 'insert', crash),
    'before the blob is linked': (metadata) => before(metadata, 'blobs', 'link', crash),
    'before the commit': (metadata) => after(metadata, 'blobs', 'link', crash),
    'after the commit': (metadata) => afterCommit(metadata, crash),
  }

  test.each(Object.keys(steps))('%s: the same request is acknowledged when it comes again', async (step) => {
    const { world, scope } = await open()
    const owner = { ...scope, subject: 'alice' }
    const { id } = await startUpload(world, owner, 'free')
    await appendToUpload(world, owner, id, bodyOf(bytes))
    const dying = { ...world, metadata: steps[step]?.(world.metadata) ?? world.metadata }

    expect(await errorOf(finishUpload(dying, owner, id, digest, bodyOf()))).toBeInstanceOf(SimulatedCrash)
    expect(await auditStores(world.dataDir)).toEqual([])
    await finishUpload(world, owner, id, digest, bodyOf())

    expect(await pull(world, scope, digest)).toBe('all of it')
    grow(world)
    await collect(world, { uploadIdleMs: 0, uploadDoneMs: 0, holdMs: 0 })
    expect(listFiles(world.dataDir)).toEqual([])
    expect(await auditStores(world.dataDir)).toEqual([])
  })

  test('with its last bytes: they are not taken twice', async () => {
    const { world, scope } = await open()
    const owner = { ...scope, subject: 'alice' }
    const { id } = await startUpload(world, owner, 'free')
    await appendToUpload(world, owner, id, bodyOf(bytes.subarray(0, 3)))
    const dying = { ...world, metadata: before(world.metadata, 'blobs', 'insert', crash) }
    await errorOf(finishUpload(dying, owner, id, digest, bodyOf(bytes.subarray(3))))

    expect(await describeUpload(world, owner, id)).toBe(3)
    await finishUpload(world, owner, id, digest, bodyOf(bytes.subarray(3)))

    expect(await pull(world, scope, digest)).toBe('all of it')
  })
})
