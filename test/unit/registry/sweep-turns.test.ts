// Which server sweeps the blob store, and what happens when that server fails, is stopped or crashes.
import { describe, expect, test } from 'bun:test'
import type { BlobStore, OrphanedObject, StorageKey } from '../../../src/ports/blob-store.ts'
import { sweepOrphansOnce } from '../../../src/registry/garbage.ts'
import { errorOf } from '../../support/basics/outcomes.ts'
import { useTemporaryFolders } from '../../support/basics/temporary-folders.ts'
import { Gate } from '../../support/clocks/gates.ts'
import { damageMetadata } from '../../support/stores/store-damage.ts'
import { freshKey } from '../../support/stores/stored-objects.ts'
import { openWorld } from '../../support/stores/use-case-world.ts'

const temporaryFolder = useTemporaryFolders('sweep-turns')
const minuteMs = 60_000
const dayMs = 24 * 60 * minuteMs
const everyMs = 7 * dayMs
const ageMs = 8 * dayMs
const nothing = async (): Promise<void> => undefined

function strayAt(storageKey: StorageKey): OrphanedObject {
  return { storageKey, openedFor: storageKey, notes: undefined }
}

/** A blob store of `pages` pages, an orphaned object on each; at each page something else happens first. */
function blobsOf(world: Pick<BlobStore, never> & { readonly blobs: BlobStore }, pages: number) {
  const seen: number[] = []
  const open = (atPage: (page: number) => Promise<void> = nothing): Pick<BlobStore, 'remove' | 'listOlderThan'> => ({
    remove: (...asked) => world.blobs.remove(...asked),
    async *listOlderThan() {
      for (let page = 1; page <= pages; page += 1) {
        await atPage(page)
        seen.push(page)
        yield [strayAt(freshKey())]
      }
    },
  })
  return { seen, open }
}

async function openSweeps(pages = 3) {
  const world = await openWorld(temporaryFolder())
  const { metadata } = world
  const { seen, open } = blobsOf(world, pages)
  return {
    metadata,
    /** The pages that were looked at, by whomever. */
    seen,
    /** One server's look whether it has something to do. */
    sweep: (atPage?: (page: number) => Promise<void>, shouldStop?: () => boolean, prepare = nothing) =>
      sweepOrphansOnce({ metadata, blobs: open(atPage) }, { ageMs, everyMs }, prepare, shouldStop),
    passTime: (ms: number) => damageMetadata(world.dataDir, `UPDATE turns SET due_at = due_at - ${ms}`),
    freeze: () => metadata.transaction(({ marks }) => marks.set('read-only', '{}')),
  }
}

const whole = { trashed: 3, isWhole: true }

describe('a sweep', () => {
  test('is made once for all callers, and again when its time has come', async () => {
    const { sweep, passTime, seen } = await openSweeps()

    const all = await Promise.all(Array.from({ length: 20 }, () => sweep()))
    expect(all.filter((swept) => swept !== undefined)).toEqual([whole])
    passTime(everyMs - minuteMs)
    expect(await sweep()).toBeUndefined()
    passTime(minuteMs)

    expect(await sweep()).toEqual(whole)
    expect(seen.length).toBe(6)
  })

  test('that fails is due again after half an hour, and not before', async () => {
    const { sweep, passTime, seen } = await openSweeps()
    const failure = new Error('the store is away')
    const failing = () =>
      errorOf(
        sweep(async (page) => {
          if (page === 2) throw failure
        }),
      )

    expect(await failing()).toBe(failure)
    expect(await sweep()).toBeUndefined()
    passTime(29 * minuteMs)
    expect(await sweep()).toBeUndefined()
    passTime(minuteMs)
    expect(await failing()).toBe(failure)
    expect(await sweep()).toBeUndefined()
    passTime(30 * minuteMs)

    expect(await sweep()).toEqual(whole)
    expect(seen).toEqual([1, 1, 1, 2, 3])
    passTime(everyMs - minuteMs)
    expect(await sweep()).toBeUndefined()
  })

  test('whose store turns out to belong to another registry looks at nothing, and is due again', async () => {
    const { sweep, passTime, seen } = await openSweeps()
    const refusal = new Error('it belongs to another registry')

    expect(await errorOf(sweep(undefined, undefined, () => Promise.reject(refusal)))).toBe(refusal)

    expect(seen).toEqual([])
    passTime(30 * minuteMs)
    expect(await sweep()).toEqual(whole)
  })

  test('that is stopped with its server is made by the next', async () => {
    const { sweep, passTime } = await openSweeps()
    let isStopped = false
    const stopped = await sweep(
      async (page) => {
        isStopped = page === 2
      },
      () => isStopped,
    )

    expect(stopped).toEqual({ trashed: 1, isWhole: false })
    expect(await sweep()).toBeUndefined()
    passTime(30 * minuteMs)
    expect(await sweep()).toEqual(whole)
  })

  test('that a move of the registry cuts off is made when that is over', async () => {
    const { sweep, passTime, freeze, metadata } = await openSweeps()

    const cut = await sweep(async (page) => {
      if (page === 2) await freeze()
    })

    expect(cut).toEqual({ trashed: 1, isWhole: false })
    passTime(30 * minuteMs)
    expect(await sweep()).toEqual({ trashed: 0, isWhole: false })
    await metadata.transaction(({ marks }) => marks.remove('read-only'))
    passTime(30 * minuteMs)
    expect(await sweep()).toEqual(whole)
  })

  test('whose server crashes is made by exactly one other server', async () => {
    const { sweep, passTime } = await openSweeps()
    const gate = new Gate()
    const dying = sweep(async (page) => {
      if (page === 2) await gate.pass()
    })
    await gate.reached
    expect(await sweep()).toBeUndefined()
    passTime(30 * minuteMs)

    const others = await Promise.all([sweep(), sweep(), sweep()])

    expect(others.filter((swept) => swept !== undefined)).toEqual([whole])
    // It was only slow: its work does no harm, and no further sweep is made.
    gate.open()
    expect(await dying).toEqual(whole)
    expect(await sweep()).toBeUndefined()
    passTime(everyMs - minuteMs)
    expect(await sweep()).toBeUndefined()
  })

  test('that takes for hours keeps its turn as it goes on', async () => {
    const { sweep, passTime } = await openSweeps(12)
    const others: unknown[] = []

    const swept = await sweep(async (page) => {
      // It was at work all the time: of the pages in between nothing is seen here.
      if (page % 2 === 0) others.push(await sweep())
      else passTime(30 * minuteMs)
    })

    expect(swept).toEqual({ trashed: 12, isWhole: true })
    expect(others).toEqual(Array.from({ length: 6 }, () => undefined))
  })
})
