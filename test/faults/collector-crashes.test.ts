// The collector and the commit of an upload crash at each step on SQLite: repeating the work succeeds. The same with killed
// replicas, and the collector against pushes, mounts and HEADs: test/replicas/collector-*.test.ts.
import { afterAll, describe, expect, test } from 'bun:test'
import type { BlobStore } from '../../src/ports/blob-store.ts'
import type { MetadataStore } from '../../src/ports/metadata-store.ts'
import { describeBlob } from '../../src/registry/blobs.ts'
import { appendToUpload, describeUpload, finishUpload, startUpload } from '../../src/registry/uploads.ts'
import { digestOf } from '../support/basics/generated-bytes.ts'
import { errorOf } from '../support/basics/outcomes.ts'
import { useTemporaryFolders } from '../support/basics/temporary-folders.ts'
import { after, afterCommit, before, beforeCall, crash, SimulatedCrash } from '../support/clocks/gates.ts'
import { hourMs } from '../support/stores/metadata-rows.ts'
import { auditStores, countRows, listFiles } from '../support/stores/store-audit.ts'
import {
  bodyOf,
  collect,
  grow,
  openWorld,
  pull,
  scopeOf,
  upload,
  type World,
} from '../support/stores/use-case-world.ts'

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

describe('I10, I11: the collector crashes', () => {
  const steps: Record<string, (world: World) => Pick<World, 'metadata' | 'blobs'>> = {
    'after the lock': (world) => ({ ...world, metadata: after(world.metadata, 'garbage', 'lockNextDue', crash) }),
    'after the check that nothing uses the blob': (world) => ({
      ...world,
      metadata: after(world.metadata, 'garbage', 'isInUse', crash),
    }),
    'before the commit': (world) => ({ ...world, metadata: after(world.metadata, 'garbage', 'moveToTrash', crash) }),
    'after the commit': (world) => ({ ...world, metadata: afterCommit(world.metadata, crash) }),
    'before the bytes are removed': (world) => ({ ...world, blobs: failing(world.blobs, 'remove') }),
    'after the bytes are removed': (world) => ({ ...world, blobs: failing(world.blobs, 'after remove') }),
    'before the bytes are forgotten': (world) => ({
      ...world,
      metadata: before(world.metadata, 'garbage', 'removeTrashed', crash),
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
})

describe('I05: the lease of a blob', () => {
  test.each([
    { request: describeBlob, elapsed: 0.6, isRenewed: true },
    { request: describeBlob, elapsed: 0.4, isRenewed: false },
    { request: pull, elapsed: 0.6, isRenewed: false },
  ])('$request.name after $elapsed of the lease renews it: $isRenewed', async ({ request, elapsed, isRenewed }) => {
    const { world, scope } = await open()
    const digest = await upload(world, scope, 'layer')
    grow(world)
    await describeBlob(world, scope, digest)

    grow(world, elapsed * hourMs)
    await request(world, scope, digest)
    grow(world, 0.7 * hourMs)
    await collect(world)

    expect(await pull(world, scope, digest)).toBe(isRenewed ? 'layer' : 'blob-unknown')
  })
})

describe('I26: the commit of an upload crashes', () => {
  const bytes = new TextEncoder().encode('all of it')
  const digest = digestOf(bytes)
  const steps: Record<string, (metadata: MetadataStore) => MetadataStore> = {
    'before the session is finished': (metadata) => before(metadata, 'uploads', 'commit', crash),
    'before the blob is inserted': (metadata) => before(metadata, 'blobs', 'add', crash),
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
    // A repeated request only reads what was committed. It waits until that is durable.
    const unsynced = { ...world, metadata: beforeCall(world.metadata, 'flush', crash) }
    expect(await errorOf(finishUpload(unsynced, owner, id, digest, bodyOf()))).toBeInstanceOf(SimulatedCrash)

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
    const dying = { ...world, metadata: before(world.metadata, 'blobs', 'add', crash) }
    await errorOf(finishUpload(dying, owner, id, digest, bodyOf(bytes.subarray(3))))

    expect(await describeUpload(world, owner, id)).toBe(3)
    await finishUpload(world, owner, id, digest, bodyOf(bytes.subarray(3)))

    expect(await pull(world, scope, digest)).toBe('all of it')
  })
})
