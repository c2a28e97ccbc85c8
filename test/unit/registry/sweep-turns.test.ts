// Which server sweeps the blob store, and what happens when that server fails, is stopped or crashes.
import { describe, expect, test } from 'bun:test'
import type { BlobStore } from '../../../src/ports/blob-store.ts'
import { sweepOrphansOnce } from '../../../src/registry/garbage.ts'
import { useTemporaryFolders } from '../../support/basics/temporary-folders.ts'
import { Gate } from '../../support/clocks/gates.ts'
import { damageMetadata } from '../../support/stores/store-damage.ts'
import { freshKey } from '../../support/stores/stored-objects.ts'
import { openWorld } from '../../support/stores/use-case-world.ts'

const temporaryFolder = useTemporaryFolders('sweep-turns')
const minuteMs = 60_000
const dayMs = 24 * 60 * minuteMs
const everyMs = 7 * dayMs

interface Attempt {
  /** Runs before the server looks at the page. */
  readonly atPage?: (page: number) => Promise<void>
  readonly prepare?: () => Promise<void>
  readonly shouldStop?: () => boolean
}

/** A blob store of `pages` pages, with an orphaned object on each. */
async function openSweeps(pages = 3) {
  const { metadata, blobs, dataDir } = await openWorld(temporaryFolder())
  const seen: number[] = []
  const open = (atPage: Attempt['atPage']): Pick<BlobStore, 'remove' | 'listOlderThan'> => ({
    remove: (...asked) => blobs.remove(...asked),
    async *listOlderThan() {
      for (let page = 1; page <= pages; page += 1) {
        await atPage?.(page)
        seen.push(page)
        const storageKey = freshKey()
        yield [{ storageKey, openedFor: storageKey, notes: undefined }]
      }
    },
  })
  return {
    metadata,
    /** The pages that any server has looked at. */
    seen,
    /** One server sweeps if that is due. */
    sweep: ({ atPage, prepare = async () => undefined, shouldStop }: Attempt = {}) =>
      sweepOrphansOnce({ metadata, blobs: open(atPage) }, { ageMs: 8 * dayMs, everyMs }, prepare, shouldStop),
    passTime: (ms: number) => damageMetadata(dataDir, `UPDATE turns SET due_at = due_at - ${ms}`),
  }
}

type Sweeps = Awaited<ReturnType<typeof openSweeps>>

const whole = { trashed: 3, isWhole: true }
const cut = { trashed: 1, isWhole: false }
const failure = new Error('the store is away')
const fail = () => Promise.reject(failure)

describe('a sweep', () => {
  test('is made once by all servers, and again when its time has come', async () => {
    const { sweep, passTime, seen } = await openSweeps()

    const all = await Promise.all(Array.from({ length: 20 }, () => sweep()))
    expect(all.filter((swept) => swept !== undefined)).toEqual([whole])
    passTime(everyMs - minuteMs)
    expect(await sweep()).toBeUndefined()
    passTime(minuteMs)

    expect(await sweep()).toEqual(whole)
    expect(seen.length).toBe(6)
  })

  const interruptions: readonly (readonly [string, (sweeps: Sweeps) => Attempt, unknown, readonly number[]])[] = [
    ['fails', () => ({ atPage: async (page) => (page === 2 ? fail() : undefined) }), failure, [1]],
    ['finds that the store belongs to another registry', () => ({ prepare: fail }), failure, []],
    ['is stopped with its server', ({ seen }) => ({ shouldStop: () => seen.length === 2 }), cut, [1, 2]],
    [
      'is cut off by a move of the registry',
      ({ metadata }) => ({
        atPage: async (page) => {
          if (page === 2) await metadata.transaction(({ marks }) => marks.set('read-only', '{}'))
        },
      }),
      cut,
      [1, 2],
    ],
  ]
  test.each(interruptions)(
    'that %s is due again after half an hour, and not before',
    async (_, attempt, outcome, pages) => {
      const sweeps = await openSweeps()
      const { sweep, passTime, seen, metadata } = sweeps
      const tryToSweep = () => sweep(attempt(sweeps)).catch((error: unknown) => error)

      for (let attempts = 0; attempts < 2; attempts += 1) {
        seen.length = 0
        expect([await tryToSweep(), seen]).toEqual([outcome, [...pages]])
        await metadata.transaction(({ marks }) => marks.remove('read-only'))
        expect(await sweep()).toBeUndefined()
        passTime(29 * minuteMs)
        expect(await sweep()).toBeUndefined()
        passTime(minuteMs)
      }

      expect(await sweep()).toEqual(whole)
      passTime(everyMs - minuteMs)
      expect(await sweep()).toBeUndefined()
    },
  )

  test('whose server crashes is made by exactly one other server', async () => {
    const { sweep, passTime } = await openSweeps()
    const gate = new Gate()
    const dying = sweep({ atPage: async (page) => (page === 2 ? gate.pass() : undefined) })
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

  test('that takes hours keeps its claim while it makes progress', async () => {
    const { sweep, passTime } = await openSweeps(12)
    const others: unknown[] = []

    const swept = await sweep({
      async atPage(page) {
        if (page % 2 === 0) others.push(await sweep())
        else passTime(30 * minuteMs)
      },
    })

    expect(swept).toEqual({ trashed: 12, isWhole: true })
    expect(others).toEqual(Array.from({ length: 6 }, () => undefined))
  })
})
