// Copying blobs when a store is unavailable.
import { describe, expect, test } from 'bun:test'
import { Unavailable } from '../../../../src/oci/errors.ts'
import type { BlobStore } from '../../../../src/ports/blob-store.ts'
import type { CopiedObjects } from '../../../../src/ports/store-move.ts'
import { errorOf } from '../../../support/basics/outcomes.ts'
import { useCopyWorlds } from '../../../support/moves/copy-world.ts'

const { openWorld, copy, lookInto, expectSound } = useCopyWorlds()

describe('a store that is unavailable', () => {
  const fault = new Unavailable('blob-store', { cause: new Error('no space left') })
  const messageOf = (end: string) => `Unavailable: the blob store of the ${end} is unavailable`

  test('for a while only delays the copying of a blob', async () => {
    const world = await openWorld(4)
    let left = 3
    const target: Pick<BlobStore, 'openWriter'> = {
      async openWriter(key, object) {
        if (left > 0) {
          left -= 1
          throw fault
        }
        return world.to.blobs.openWriter(key, object)
      },
    }

    const { copied, seen } = await copy(world, { target, atOnce: 1 })

    expect([copied, seen.retries.map(String)]).toEqual([4, Array.from({ length: 3 }, () => messageOf('target'))])
    expect(seen.retries[0]).toHaveProperty('cause.message', 'no space left')
  })

  test('for longer ends the copying, and the blobs that were recorded are not copied again', async () => {
    const world = await openWorld(9)
    let left = 5
    const target: Pick<BlobStore, 'openWriter'> = {
      async openWriter(key, object) {
        if (left === 0) throw fault
        left -= 1
        return world.to.blobs.openWriter(key, object)
      },
    }

    const error = await errorOf(copy(world, { target }))
    expect(String(error)).toBe(messageOf('target'))
    expect(error).toHaveProperty('cause.message', 'no space left')
    expect((await lookInto(world)).notes).toHaveLength(5)
    expect((await copy(world)).copied).toBe(4)
    await expectSound(world)
  })

  test('when a copy is recorded puts no object into the trash that a record may name', async () => {
    const world = await openWorld(1)
    let isFirst = true
    const copied = (records: CopiedObjects): CopiedObjects => ({
      list: (keys) => records.list(keys),
      measure: () => records.measure(),
      discard: (object) => records.discard(object),
      // The copy was recorded, and the answer was lost.
      async add(copy, leftovers) {
        await records.add(copy, leftovers)
        if (!isFirst) return
        isFirst = false
        throw fault
      },
    })

    expect((await copy(world, { copied })).copied).toBe(1)

    const { notes, trash } = await lookInto(world)
    expect(notes).toHaveLength(1)
    // The second copy of the same blob.
    expect(trash).toHaveLength(1)
    expect(trash).not.toContain(notes[0]?.storage_key)
    await expectSound(world)
  })

  test('in the middle of a blob puts the partial copy into the trash', async () => {
    const world = await openWorld(1)
    const source: Pick<BlobStore, 'read'> = {
      async read() {
        let isFirst = true
        return new ReadableStream({
          pull(controller) {
            if (isFirst) controller.enqueue(new Uint8Array(100))
            else controller.error(fault)
            isFirst = false
          },
        })
      },
    }

    const error = await errorOf(copy(world, { source }))
    expect(String(error)).toBe(messageOf('source'))
    expect(error).toHaveProperty('cause.message', 'no space left')
    const { notes, trash } = await lookInto(world)
    expect([notes.length, trash.length]).toEqual([0, 4])
    expect((await copy(world)).copied).toBe(1)
  })

  test('at the end of a blob subtracts its bytes from the progress', async () => {
    const world = await openWorld(2)
    let left = 3
    const target: Pick<BlobStore, 'openWriter'> = {
      async openWriter(key, object) {
        const writer = await world.to.blobs.openWriter(key, object)
        if (left === 0) return writer
        left -= 1
        writer.complete = () => Promise.reject(fault)
        return writer
      },
    }

    const { copied, seen } = await copy(world, { target, atOnce: 1 })

    expect([copied, seen.retries.length, seen.bytes]).toEqual([2, 3, 2_001])
  })
})
