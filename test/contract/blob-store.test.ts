import { describe, expect, test } from 'bun:test'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { FilesystemBlobStore } from '../../src/adapters/blobs-filesystem/filesystem-blob-store.ts'
import { Spoiled, Unavailable } from '../../src/oci/errors.ts'
import type { StorageKey } from '../../src/ports/blob-store.ts'
import { generatedBytes } from '../support/basics/generated-bytes.ts'
import { errorOf, outcomeOf } from '../support/basics/outcomes.ts'
import { useTemporaryFolders } from '../support/basics/temporary-folders.ts'
import { projectRoot } from '../support/basics/test-project.ts'
import { MemoryBlobStore } from '../support/stores/memory-blob-store.ts'
import { append, emptyObject, freshKey, readAll, storeWhole } from '../support/stores/stored-objects.ts'
import { blobStoreContract, sharedBlobStoreContract } from './blob-store.ts'
import { writerControls } from './blob-writer.ts'

const temporaryFolder = useTemporaryFolders('blobs')

blobStoreContract(
  'memory',
  async () => {
    const store = new MemoryBlobStore()
    return { store, reopen: async () => store }
  },
  20,
)
describe('blob store: the walk of a writer', writerControls)

async function openFiles() {
  const root = join(temporaryFolder(), 'blobs')
  return { store: await FilesystemBlobStore.open(root), reopen: () => FilesystemBlobStore.open(root) }
}

blobStoreContract('filesystem', openFiles, 40)
sharedBlobStoreContract('filesystem', openFiles)

async function openStore(): Promise<{ root: string; store: FilesystemBlobStore }> {
  const root = join(temporaryFolder(), 'blobs')
  return { root, store: await FilesystemBlobStore.open(root) }
}

function modeOf(path: string): number {
  return statSync(path).mode & 0o777
}

describe('blob store, filesystem: permissions', () => {
  test('folders and files belong to their owner alone, whatever the umask is', async () => {
    const umask = process.umask(0)
    const { root, store } = await openStore()
    const key = await storeWhole(store, generatedBytes(10)).finally(() => process.umask(umask))

    const folders = [root, ...readdirSync(root).map((name) => join(root, name))]
    expect(folders).toHaveLength(257)
    expect(folders.filter((folder) => modeOf(folder) !== 0o700)).toEqual([])
    expect(modeOf(join(root, key.slice(-2), key))).toBe(0o600)
  })
})

describe('blob store, filesystem: keys never become paths', () => {
  test.each([
    '../x',
    '../../etc/passwd',
    '/etc/passwd',
    '',
    '.',
    'a'.repeat(36),
    '0193A7C2-0000-7000-8000-000000000000',
    '0193a7c2-0000-7000-8000-000000000000/../../x',
    '0193a7c2-0000-7000-8000-00000000000\n',
    '0193a7c2-0000-7000-8000-0000000000\u0000a',
  ])('%j is refused by every operation', async (text) => {
    const { root, store } = await openStore()
    const bystander = join(root, '..', 'x')
    writeFileSync(bystander, 'not ours')
    const key = text as StorageKey

    await errorOf(store.openWriter(key, emptyObject))
    await errorOf(store.open(key, 8))
    await errorOf(store.remove(key))
    expect(existsSync(bystander)).toBe(true)
  })
})

describe('blob store, filesystem: when the disk fails', () => {
  // A device in the file's place fails as a disk does: /dev/full takes no bytes, /dev/null cannot be synced.
  async function writerOn(device: string) {
    const { root, store } = await openStore()
    const key = freshKey()
    symlinkSync(device, join(root, key.slice(-2), key))
    return store.openWriter(key, emptyObject)
  }

  test.each([
    ['write', '/dev/full'],
    ['sync', '/dev/null'],
  ])('a failed %s is final for its writer, and reported as unavailable', async (_, device) => {
    const writer = await writerOn(device)
    await writer.write(generatedBytes(10))
    for (const act of [() => writer.complete(), () => writer.complete(), () => writer.flush(), () => writer.flush()]) {
      expect(await errorOf(act())).toBeInstanceOf(Unavailable)
    }
    await writer.close()
  })

  test.each([
    ['write', '/dev/full', 2],
    ['early sync', '/dev/null', 80],
  ])('a failed %s is told before the end, so that a long body is not read in vain', async (_, device, batchesMax) => {
    const writer = await writerOn(device)
    let batches = 1
    while (batches < 100 && (await outcomeOf(writer.write(generatedBytes(524_288)))) === 'done') batches += 1

    expect(batches).toBeLessThanOrEqual(batchesMax)
    expect(await errorOf(writer.complete())).toBeInstanceOf(Unavailable)
    await writer.close()
  })

  test('a missing folder is reported as unavailable, not as a bug', async () => {
    const { root, store } = await openStore()
    rmSync(root, { recursive: true })

    expect(await store.openWriter(freshKey(), emptyObject).catch((error: unknown) => error)).toBeInstanceOf(Unavailable)
    expect(await store.probe().catch((error: unknown) => error)).toBeInstanceOf(Unavailable)
  })
})

describe('blob store, filesystem: when something was removed behind its back', () => {
  test('an upload whose file is cut short is spoiled', async () => {
    const { root, store } = await openStore()
    const key = freshKey()
    const upload = await append(store, key, emptyObject, generatedBytes(10))
    truncateSync(join(root, key.slice(-2), key), 9)

    expect(await errorOf(store.openWriter(key, upload))).toBeInstanceOf(Spoiled)
  })

  test('a folder of it that is lost is made again for new objects, but not on a disk that is not mounted', async () => {
    const { root, store } = await openStore()
    await store.claim('one', { mayBeNew: true })
    const key = freshKey()
    rmSync(join(root, key.slice(-2)), { recursive: true })

    renameSync(join(root, 'owner'), join(root, 'owner-away'))
    expect(await errorOf(store.openWriter(key, emptyObject))).toBeInstanceOf(Unavailable)
    renameSync(join(root, 'owner-away'), join(root, 'owner'))
    await append(store, key, emptyObject, generatedBytes(10))

    expect(await readAll(await store.open(key, 10))).toEqual(generatedBytes(10))
    expect(modeOf(join(root, key.slice(-2)))).toBe(0o700)
  })

  test('several writers that meet in a lost folder all write', async () => {
    const { root, store } = await openStore()
    const keys = Array.from({ length: 6 }, () => `${freshKey().slice(0, -2)}ab` as StorageKey)
    rmSync(join(root, 'ab'), { recursive: true })

    const opened = await Promise.allSettled(keys.map((key) => store.openWriter(key, emptyObject)))
    for (const one of opened) if (one.status === 'fulfilled') await one.value.close()

    expect(opened.map(({ status }) => status)).toEqual(keys.map(() => 'fulfilled'))
  })

  test('a disk that is not mounted makes new objects and probes fail as unavailable, though its folders exist', async () => {
    const { root, store } = await openStore()
    await store.claim('one', { mayBeNew: true })
    renameSync(join(root, 'owner'), join(root, 'owner-away'))

    expect(await errorOf(store.openWriter(freshKey(), emptyObject))).toBeInstanceOf(Unavailable)
    expect(await errorOf(store.probe())).toBeInstanceOf(Unavailable)

    renameSync(join(root, 'owner-away'), join(root, 'owner'))
    await storeWhole(store, generatedBytes(10))
    await store.probe()
  })

  test('a file that cannot be read is unavailable and not lost, and a folder in its place is no object', async () => {
    const { root, store } = await openStore()
    const [link, folder] = [freshKey(), freshKey()]
    symlinkSync(link, join(root, link.slice(-2), link))
    const path = join(root, folder.slice(-2), folder)
    mkdirSync(path)

    expect(await errorOf(store.open(link, 10))).toBeInstanceOf(Unavailable)
    expect(await errorOf(store.has(link, 10))).toBeInstanceOf(Unavailable)
    expect(await store.has(folder, statSync(path).size)).toBe(false)
    expect(await store.open(folder, statSync(path).size)).toBeUndefined()
  })
})

test('blob store, filesystem: memory does not grow with what streams through a writer', async () => {
  const run = Bun.spawnSync(
    [process.execPath, 'test/contract/stream-to-store.ts', join(temporaryFolder(), 'blobs'), String(512 * 1024 * 1024)],
    { cwd: projectRoot },
  )
  const { grownBytes } = JSON.parse(run.stdout.toString())

  // 512 MiB went through; a store that gathers would grow by all of it.
  expect(grownBytes).toBeLessThan(128 * 1024 * 1024)
})
