// The bytes of a move when the world fails.
import { describe, expect, test } from 'bun:test'
import { Unavailable } from '../../../../src/oci/errors.ts'
import type { BlobStore } from '../../../../src/ports/blob-store.ts'
import type { CopiedObjects } from '../../../../src/ports/store-move.ts'
import { errorOf } from '../../../support/basics/outcomes.ts'
import { useCopyWorlds } from '../../../support/moves/copy-world.ts'

const { openWorld, copy, lookInto, expectSound } = useCopyWorlds()

describe('trouble', () => {
  const trouble = new Unavailable('the blob store', { cause: new Error('no space left') })
  const saidOf = (place: string) => `Unavailable: the blob store of the ${place} place is unavailable`

  test('that passes is waited for, blob by blob', async () => {
    const world = await openWorld(4)
    let left = 3
    const target: Pick<BlobStore, 'openWriter'> = {
      async openWriter(key, object) {
        if (left > 0) {
          left -= 1
          throw trouble
        }
        return world.to.blobs.openWriter(key, object)
      },
    }

    const { copied, seen } = await copy(world, { target, atOnce: 1 })

    expect([copied, seen.troubles.map(String)]).toEqual([4, Array.from({ length: 3 }, () => saidOf('new'))])
    expect(seen.troubles[0]).toHaveProperty('cause.message', 'no space left')
  })

  test('that stays ends the copying, and what was noted counts', async () => {
    const world = await openWorld(9)
    let left = 5
    const target: Pick<BlobStore, 'openWriter'> = {
      async openWriter(key, object) {
        if (left === 0) throw trouble
        left -= 1
        return world.to.blobs.openWriter(key, object)
      },
    }

    const fault = await errorOf(copy(world, { target }))
    expect(String(fault)).toBe(saidOf('new'))
    expect(fault).toHaveProperty('cause.message', 'no space left')
    expect((await lookInto(world)).notes).toHaveLength(5)
    expect((await copy(world)).copied).toBe(4)
    await expectSound(world)
  })

  test('as a copy is noted leaves nothing in the trash that a note may name', async () => {
    const world = await openWorld(1)
    let isFirst = true
    const copied = (notes: CopiedObjects): CopiedObjects => ({
      list: (keys) => notes.list(keys),
      measure: () => notes.measure(),
      discard: (object) => notes.discard(object),
      // It was noted, and the answer was lost.
      async note(copy, leftovers) {
        await notes.note(copy, leftovers)
        if (!isFirst) return
        isFirst = false
        throw trouble
      },
    })

    expect((await copy(world, { copied })).copied).toBe(1)

    const { notes, trash } = await lookInto(world)
    expect(notes).toHaveLength(1)
    // The second copy of the same blob is one too many.
    expect(trash).toHaveLength(1)
    expect(trash).not.toContain(notes[0]?.storage_key)
    await expectSound(world)
  })

  test('in the middle of a blob drops what was written, into the trash', async () => {
    const world = await openWorld(1)
    const source: Pick<BlobStore, 'read'> = {
      async read() {
        let isFirst = true
        return new ReadableStream({
          pull(controller) {
            if (isFirst) controller.enqueue(new Uint8Array(100))
            else controller.error(trouble)
            isFirst = false
          },
        })
      },
    }

    const fault = await errorOf(copy(world, { source }))
    expect(String(fault)).toBe(saidOf('old'))
    expect(fault).toHaveProperty('cause.message', 'no space left')
    const { notes, trash } = await lookInto(world)
    expect([notes.length, trash.length]).toEqual([0, 4])
    expect((await copy(world)).copied).toBe(1)
  })

  test('takes back what was counted of a blob that has to be copied again', async () => {
    const world = await openWorld(2)
    let left = 3
    const target: Pick<BlobStore, 'openWriter'> = {
      async openWriter(key, object) {
        const writer = await world.to.blobs.openWriter(key, object)
        if (left === 0) return writer
        left -= 1
        writer.complete = () => Promise.reject(trouble)
        return writer
      },
    }

    const { copied, seen } = await copy(world, { target, atOnce: 1 })

    expect([copied, seen.troubles.length, seen.bytes]).toEqual([2, 3, 2_001])
  })
})
