// Copying blobs: what is copied and recorded, missing and damaged bytes, and stores that are unavailable.
import { describe, expect, test } from 'bun:test'
import { SqliteDatabase } from '../../../../src/adapters/metadata-sql/sqlite-database.ts'
import { Unavailable } from '../../../../src/oci/errors.ts'
import type { BlobStore, BlobWriter } from '../../../../src/ports/blob-store.ts'
import { digestOf, generatedBytes } from '../../../support/basics/generated-bytes.ts'
import { errorOf } from '../../../support/basics/outcomes.ts'
import { type CopyWorld, store, useCopyWorlds } from './copy-world.ts'

const { openWorld, copy, lookInto, expectSound } = useCopyWorlds()

type Source = Pick<BlobStore, 'read'>
type Target = Pick<BlobStore, 'openWriter'>

/** The source, where each read is replaced, or is as it is if `read` gives `as is`. */
function sourceOf(world: CopyWorld, read: (...asked: Parameters<Source['read']>) => unknown): Source {
  return {
    async read(key, size) {
      const own = await read(key, size)
      return own === 'as is' ? world.from.blobs.read(key, size) : (own as Awaited<ReturnType<Source['read']>>)
    },
  }
}

/** The target, where something happens before or to each writer. */
function targetOf(world: CopyWorld, atOpen: () => unknown, change: (writer: BlobWriter) => unknown = () => 0): Target {
  return {
    async openWriter(key, object) {
      await atOpen()
      const writer = await world.to.blobs.openWriter(key, object)
      await change(writer)
      return writer
    },
  }
}

const sourceKeys = (notes: readonly { readonly source_key: string }[]) => notes.map((note) => note.source_key)
const storedKeys = (world: CopyWorld) => world.stored.map(({ key }) => key).toSorted()

describe('the copying of blobs', () => {
  test('copies blobs of any digest and size to new keys, and records each with its old key', async () => {
    const world = await openWorld(25)
    const bytes = generatedBytes(3_000)
    const others = [
      await store(world.from, world.shelf, bytes, digestOf(bytes, 'sha512')),
      await store(world.from, world.shelf, new Uint8Array()),
    ]

    const { copied, damaged, seen } = await copy(world)

    const { notes, trash } = await lookInto(world)
    expect([copied, damaged, trash]).toEqual([27, [], []])
    expect(sourceKeys(notes)).toEqual([...storedKeys(world), ...others.map(({ key }) => key)].toSorted())
    expect(notes.filter((note) => note.source_key === note.storage_key)).toEqual([])
    expect([seen.bytes, seen.blobs.length]).toEqual([25 * 1_000 + (25 * 24) / 2 + 3_000, 27])
  })

  test('continues where it stopped: recorded blobs are not read again', async () => {
    const world = await openWorld(6)
    await copy(world)
    await store(world.from, world.shelf, generatedBytes(500, 99))
    let reads = 0
    const source = sourceOf(world, () => {
      reads += 1
      return 'as is'
    })

    expect([(await copy(world, { source })).copied, reads]).toEqual([1, 1])
    expect((await lookInto(world)).notes).toHaveLength(7)
    expect([(await copy(world, { source })).copied, reads]).toEqual([0, 1])
  })

  test.each([1, 3])('copies at most %d at the same time', async (atOnce) => {
    const world = await openWorld(12)
    let running = 0
    let most = 0
    const begin = () => {
      running += 1
      most = Math.max(most, running)
    }
    const target = targetOf(world, begin, async (writer) => {
      await Bun.sleep(5)
      const close = writer.close.bind(writer)
      writer.close = () => {
        running -= 1
        return close()
      }
    })

    expect((await copy(world, { target, atOnce })).copied).toBe(12)
    expect([most, running]).toEqual([atOnce, 0])
  })
})

describe('missing and damaged bytes', () => {
  test('are reported and not recorded, and the other blobs are copied', async () => {
    const world = await openWorld(5)
    const wrong = await store(world.from, world.shelf, generatedBytes(700, 70), digestOf('something else'))
    const missing = await store(world.from, world.shelf, generatedBytes(600, 60))
    await world.from.blobs.remove(missing.key)

    const { copied, damaged } = await copy(world)

    const reported = damaged.map(({ blob, fault }) => [blob.digest, blob.account, blob.storageKey, fault])
    const expected = [
      [wrong.digest, 'acme', wrong.key, 'damaged'],
      [missing.digest, 'acme', missing.key, 'missing'],
    ]
    expect([copied, reported.toSorted()]).toEqual([5, expected.toSorted()])
    const { notes, trash } = await lookInto(world)
    expect(sourceKeys(notes)).toEqual(storedKeys(world))
    // Two partial copies of the damaged blob, which was read twice.
    expect(trash).toHaveLength(2)
    await expectSound(world)
  })

  test('of a blob that was collected meanwhile are not reported', async () => {
    const world = await openWorld(3)
    const source = sourceOf(world, async (key) => {
      if (key !== world.stored[0]?.key) return 'as is'
      const behind = new SqliteDatabase(world.from.path)
      await behind.run('DELETE FROM blobs WHERE storage_key = $1', [key])
      await behind.close()
      await new Promise(setImmediate)
      return undefined
    })

    expect(await copy(world, { source })).toMatchObject({ copied: 2, damaged: [] })
  })

  test('that are damaged on the network are read again', async () => {
    const world = await openWorld(2)
    let reads = 0
    const source = sourceOf(world, (_, size) => {
      reads += 1
      return reads === 1 ? new Blob(['x'.repeat(size)]).stream() : 'as is'
    })

    expect(await copy(world, { source })).toMatchObject({ copied: 2, damaged: [] })
    await expectSound(world)
  })
})

describe('a store that is unavailable', () => {
  const fault = new Unavailable('blob-store', { cause: new Error('no space left') })
  const messageOf = (end: string) => `Unavailable: the blob store of the ${end} is unavailable`
  const failTimes = (times: number) => {
    let left = times
    return () => {
      left -= 1
      if (left >= 0) throw fault
    }
  }
  const expectFault = (error: unknown, end: string) => {
    expect(String(error)).toBe(messageOf(end))
    expect(error).toHaveProperty('cause.message', 'no space left')
  }

  test.each(['beginning', 'end'])(
    'for a while only delays a blob, and its bytes count once: at its %s',
    async (when) => {
      const world = await openWorld(4)
      const fail = failTimes(3)
      const target = targetOf(world, when === 'beginning' ? fail : Boolean, (writer) => {
        const complete = writer.complete.bind(writer)
        if (when === 'end') writer.complete = async () => fail() ?? complete()
      })

      const { copied, seen } = await copy(world, { target, atOnce: 1 })

      expect([copied, seen.retries.length, seen.bytes]).toEqual([4, 3, 4_006])
      for (const error of seen.retries) expectFault(error, 'target')
    },
  )

  test('for longer ends the copying, and the blobs that were recorded are not copied again', async () => {
    const world = await openWorld(9)
    let left = 5
    const target = targetOf(world, () => {
      if (left === 0) throw fault
      left -= 1
    })

    expectFault(await errorOf(copy(world, { target })), 'target')
    expect((await lookInto(world)).notes).toHaveLength(5)
    expect((await copy(world)).copied).toBe(4)
    await expectSound(world)
  })

  test('when a copy is recorded puts no object into the trash that a record may name', async () => {
    const world = await openWorld(1)
    const fail = failTimes(1)

    const { copied } = await copy(world, {
      copied: (records) => ({
        list: (keys) => records.list(keys),
        measure: () => records.measure(),
        discard: (object) => records.discard(object),
        // The copy was recorded, and the answer was lost.
        async add(...recorded) {
          await records.add(...recorded)
          fail()
        },
      }),
    })

    const { notes, trash } = await lookInto(world)
    // The trash has the second copy of the same blob.
    expect([copied, notes.length, trash.length]).toEqual([1, 1, 1])
    expect(trash).not.toContain(notes[0]?.storage_key)
    await expectSound(world)
  })

  test('in the middle of a blob puts the partial copies into the trash', async () => {
    const world = await openWorld(1)
    const source = sourceOf(world, async function* () {
      yield new Uint8Array(100)
      throw fault
    })

    expectFault(await errorOf(copy(world, { source })), 'source')
    const { notes, trash } = await lookInto(world)
    expect([notes.length, trash.length]).toEqual([0, 4])
    expect((await copy(world)).copied).toBe(1)
  })
})
