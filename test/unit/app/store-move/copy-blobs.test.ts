// Copying blobs: what is copied and recorded, and what happens to missing and damaged bytes.
import { describe, expect, test } from 'bun:test'
import { SqliteDatabase } from '../../../../src/adapters/metadata-sql/sqlite-database.ts'
import type { BlobStore } from '../../../../src/ports/blob-store.ts'
import { digestOf, generatedBytes } from '../../../support/basics/generated-bytes.ts'
import { store, useCopyWorlds } from '../../../support/moves/copy-world.ts'

const { openWorld, copy, lookInto, expectSound } = useCopyWorlds()

describe('copying the blobs', () => {
  test('copies all bytes to new keys, and records each with its old key', async () => {
    const world = await openWorld(25)

    const { copied, damaged, seen } = await copy(world)

    const { notes, trash } = await lookInto(world)
    expect([copied, damaged, trash]).toEqual([25, [], []])
    expect(notes.map((note) => note.source_key)).toEqual(world.stored.map(({ key }) => key).toSorted())
    expect(notes.filter((note) => note.source_key === note.storage_key)).toEqual([])
    expect(seen.bytes).toBe(25 * 1_000 + (25 * 24) / 2)
    expect(seen.blobs).toHaveLength(25)
    await expectSound(world)
  })

  test('continues where it stopped: recorded blobs are not read again', async () => {
    const world = await openWorld(6)
    await copy(world)
    await store(world.from, world.shelf, generatedBytes(500, 99))
    const read: string[] = []
    const source: Pick<BlobStore, 'read'> = {
      read: (key, size) => {
        read.push(key)
        return world.from.blobs.read(key, size)
      },
    }

    expect((await copy(world, { source })).copied).toBe(1)
    expect(read).toHaveLength(1)
    expect((await lookInto(world)).notes).toHaveLength(7)
    expect((await copy(world, { source })).copied).toBe(0)
    expect(read).toHaveLength(1)
  })

  test.each([1, 3])('copies at most %d at the same time', async (atOnce) => {
    const world = await openWorld(12)
    let running = 0
    let most = 0
    const target: Pick<BlobStore, 'openWriter'> = {
      async openWriter(key, object) {
        running += 1
        most = Math.max(most, running)
        const writer = await world.to.blobs.openWriter(key, object)
        await Bun.sleep(5)
        const close = writer.close.bind(writer)
        return Object.assign(writer, {
          close: async () => {
            running -= 1
            await close()
          },
        })
      },
    }

    expect((await copy(world, { target, atOnce })).copied).toBe(12)
    expect([most, running]).toEqual([atOnce, 0])
  })

  test('copies blobs with SHA-512 digests and empty blobs', async () => {
    const world = await openWorld()
    const bytes = generatedBytes(3_000)
    await store(world.from, world.shelf, bytes, digestOf(bytes, 'sha512'))
    await store(world.from, world.shelf, new Uint8Array())

    expect(await copy(world)).toMatchObject({ copied: 2, damaged: [] })
  })
})

describe('missing and damaged bytes', () => {
  test('are reported and not recorded, and the other blobs are copied', async () => {
    const world = await openWorld(5)
    const lie = generatedBytes(700, 70)
    const wrong = await store(world.from, world.shelf, lie, digestOf('something else'))
    const missing = await store(world.from, world.shelf, generatedBytes(600, 60))
    await world.from.blobs.remove(missing.key)

    const { copied, damaged } = await copy(world)

    expect(copied).toBe(5)
    expect(damaged.map(({ blob, fault }) => [blob.digest, blob.account, blob.storageKey, fault]).toSorted()).toEqual(
      [
        [wrong.digest, 'acme', wrong.key, 'damaged'],
        [missing.digest, 'acme', missing.key, 'missing'],
      ].toSorted(),
    )
    const { notes, trash } = await lookInto(world)
    expect(notes.map((note) => note.source_key)).toEqual(world.stored.map(({ key }) => key).toSorted())
    // Two partial copies of the damaged blob, which was read twice.
    expect(trash).toHaveLength(2)
    await expectSound(world)
  })

  test('of a blob that was collected meanwhile are not reported', async () => {
    const world = await openWorld(3)
    const [gone] = world.stored
    const source: Pick<BlobStore, 'read'> = {
      async read(key, size) {
        if (key !== gone?.key) return world.from.blobs.read(key, size)
        const behind = new SqliteDatabase(world.from.path)
        await behind.run('DELETE FROM blobs WHERE storage_key = $1', [key])
        await behind.close()
        await new Promise(setImmediate)
        return undefined
      },
    }

    expect(await copy(world, { source })).toMatchObject({ copied: 2, damaged: [] })
  })

  test('that are damaged on the network are read again', async () => {
    const world = await openWorld(2)
    let isFirst = true
    const source: Pick<BlobStore, 'read'> = {
      async read(key, size) {
        const whole = await world.from.blobs.read(key, size)
        if (!isFirst) return whole
        isFirst = false
        return new Blob(['x'.repeat(size)]).stream()
      },
    }

    expect(await copy(world, { source })).toMatchObject({ copied: 2, damaged: [] })
    await expectSound(world)
  })
})
