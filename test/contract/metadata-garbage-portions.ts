// The contract of what the collector does some at a time: a blob's many links, what disabled accounts have queued, and
// repositories in which there is nothing.
import { expect, test } from 'bun:test'
import type { DueBlob } from '../../src/ports/garbage.ts'
import type { RepositoryRow } from '../../src/ports/repositories.ts'
import type { RowId } from '../../src/ports/row-id.ts'
import {
  type AddedBlob,
  addBlob,
  addManifest,
  candidateOf,
  freshUploadId,
  hourMs,
  openShelf,
  passTime,
  type Shelf,
  saveManifest,
} from '../support/stores/metadata-rows.ts'
import { freshKey } from '../support/stores/stored-objects.ts'
import type { OpenMetadataStore } from './metadata-store.ts'

export function portionsContract(open: OpenMetadataStore): void {
  droppingLinks(open)
  lookingAgain(open)
  puttingOff(open)
  tidying(open)
}

/** A blob that is linked by `count` repositories, in their order, the first of which has it new. */
async function linkMany(shelf: Shelf, count: number): Promise<{ blob: AddedBlob; shelves: Shelf[] }> {
  const { metadata } = shelf
  const blob = await addBlob(shelf, 'layer')
  const shelves = [shelf]
  for (let each = 1; each < count; each += 1) {
    const other = await openShelf(metadata, 'acme', `app-${each}`)
    await metadata.transaction((tables) => tables.blobs.link(other.repository, blob.id, blob.digest))
    shelves.push(other)
  }
  return { blob, shelves }
}

/** Of which shelves the blob is still a blob: their places in the list. */
async function holdersOf(shelves: readonly Shelf[], { digest }: AddedBlob): Promise<number[]> {
  const found = await Promise.all(shelves.map(({ metadata, scope }) => metadata.blobs.find(scope, digest)))
  return found.flatMap((blob, at) => (blob === undefined ? [] : [at]))
}

function droppingLinks(open: OpenMetadataStore): void {
  test('links are examined in portions, and unused links of this blob without a lease are removed', async () => {
    const shelf = await openShelf(await open())
    const { blob, shelves } = await linkMany(shelf, 8)
    const other = await addBlob(shelf, 'other')
    const rival = await openShelf(shelf.metadata, 'rival')
    const theirs = await addBlob(rival, 'layer')
    for (const at of [2, 6]) await addManifest(shelves[at] ?? shelf, 'one', { blobs: [blob] })
    const drop = (leaseMs: number, after: RowId) =>
      shelf.metadata.transaction(({ garbage }) =>
        garbage.removeUnusedLinks(candidateOf(shelf, blob), leaseMs, after, 3),
      )
    const idAt = (at: number) => shelves[at]?.repository.id ?? 0

    expect(await drop(hourMs, 0)).toEqual({ next: idAt(2), hasSkipped: false })
    expect(await holdersOf(shelves, blob)).toHaveLength(8)
    expect(await drop(0, 0)).toMatchObject({ next: idAt(2) })
    expect(await holdersOf(shelves, blob)).toEqual([2, 3, 4, 5, 6, 7])
    expect(await drop(0, idAt(2))).toMatchObject({ next: idAt(5) })
    expect(await holdersOf(shelves, blob)).toEqual([2, 6, 7])
    expect(await drop(0, idAt(5))).toEqual({ next: undefined, hasSkipped: false })
    expect(await holdersOf(shelves, blob)).toEqual([2, 6])
    expect([await holdersOf([shelf], other), await holdersOf([rival], theirs)]).toEqual([[0], [0]])
  })

  test('a link that a push holds while others go is there for it', async () => {
    const shelf = await openShelf(await open())
    const { blob, shelves } = await linkMany(shelf, 5)
    const pushing = shelves[2] ?? shelf
    let dropping: Promise<unknown> = Promise.resolve()

    await shelf.metadata.transaction(async (tables) => {
      await tables.blobs.lockByDigests(pushing.repository, [blob.digest])
      dropping = shelf.metadata.transaction(({ garbage }) =>
        garbage.removeUnusedLinks(candidateOf(shelf, blob), 0, 0, 100),
      )
      await Bun.sleep(50)
      await saveManifest(tables, pushing, 'image', { blobs: [blob] })
    })
    await dropping

    expect(await holdersOf(shelves, blob)).toEqual([2])
  })

  test('a push that meets a link which goes is told that the blob is not there', async () => {
    const shelf = await openShelf(await open())
    const { blob, shelves } = await linkMany(shelf, 3)
    const { metadata, repository } = shelf
    let finding: Promise<ReadonlyMap<string, unknown>> = Promise.resolve(new Map())

    await metadata.transaction(async ({ garbage }) => {
      await garbage.removeUnusedLinks(candidateOf(shelf, blob), 0, 0, 100)
      finding = metadata.transaction(({ blobs }) => blobs.lockByDigests(repository, [blob.digest]))
      await Bun.sleep(50)
    })

    expect((await finding).get(blob.digest)).toBeUndefined()
    expect(await holdersOf(shelves, blob)).toEqual([])
  })
}

function lookingAgain(open: OpenMetadataStore): void {
  test('a due blob tells whether it has too many links, and is locked once more if its place in the queue is the same', async () => {
    const shelf = await openShelf(await open())
    const { metadata, repository } = shelf
    const { id } = (await linkMany(shelf, 4)).blob
    const look = (linksMax: number) => metadata.transaction(({ garbage }) => garbage.lockNextDue(0, 0, linksMax))
    expect((await look(3))?.hasMoreLinks).toBe(true)
    const blob = await look(4)
    if (blob === undefined) throw new Error('nothing is due')
    expect(blob.hasMoreLinks).toBe(false)
    const again = () => metadata.transaction(({ garbage }) => garbage.lockDue(blob))

    expect(await again()).toBe(true)
    await passTime()
    await metadata.transaction(({ blobs }) => blobs.renewLeases(repository, [id]))
    expect(await again()).toBe(false)
    await metadata.transaction(({ garbage }) => garbage.moveToTrash(blob))
    expect(await again()).toBe(false)
  })
}

function puttingOff(open: OpenMetadataStore): void {
  test('in the queue show whether their account is disabled, and a delayed one alone goes to the end', async () => {
    const metadata = await open()
    const [off, on] = [await openShelf(metadata, 'off'), await openShelf(metadata, 'on')]
    const queued: RowId[] = []
    for (const [shelf, text] of [
      [off, 'one'],
      [off, 'two'],
      [on, 'three'],
      [off, 'four'],
      [on, 'five'],
    ] as const) {
      queued.push((await addBlob(shelf, text)).id)
      await passTime()
    }
    await metadata.accounts.setState('off', 'disabled')
    const list = async () => {
      const found: { blob: number; isDisabled: boolean; at: number }[] = []
      for (let from = 0; found.length < 5; from = (found.at(-1)?.at ?? 0) + 1) {
        const next = await metadata.transaction(({ garbage }) => garbage.lockNextDue(0, from, 10))
        if (next === undefined) break
        found.push({ blob: queued.indexOf(next.blobId) + 1, isDisabled: next.isDisabled, at: next.queuedAt })
      }
      return found
    }
    const before = await list()
    expect(before.map(({ blob, isDisabled }) => (isDisabled ? -blob : blob))).toEqual([-1, -2, 3, -4, 5])
    const putOff = (changed: Partial<DueBlob>) =>
      metadata.transaction(async ({ garbage }) => {
        const second = await garbage.lockNextDue(0, before[1]?.at ?? Number.NaN, 10)
        return second && garbage.requeue({ ...second, ...changed })
      })

    expect(await putOff({ queuedAt: 1 })).toBeUndefined()
    expect(await list()).toEqual(before)
    const moment = await putOff({})

    const after = await list()
    expect(after.map(({ blob }) => blob)).toEqual([1, 3, 4, 5, 2])
    expect(after.at(-1)?.at).toBe(moment ?? Number.NaN)
    expect(moment).toBeGreaterThan(before[4]?.at ?? Number.NaN)
    expect(after.slice(0, 4)).toEqual(before.filter(({ blob }) => blob !== 2))
  })
}

function tidying(open: OpenMetadataStore): void {
  test('repositories that hold nothing go, and none that holds a manifest, a link or a session', async () => {
    const metadata = await open()
    const [empty, linked, pushed, begun] = [
      await openShelf(metadata, 'acme', 'empty'),
      await openShelf(metadata, 'acme', 'linked'),
      await openShelf(metadata, 'acme', 'pushed'),
      await openShelf(metadata, 'acme', 'begun'),
    ]
    const theirs = await openShelf(metadata, 'disabled', 'empty')
    await addBlob(linked, 'layer')
    await addManifest(pushed, 'one')
    await metadata.repositories.markAsImage(pushed.repository)
    await metadata.uploads.create(begun.repository, 'alice', freshUploadId(), freshKey(), 0)
    await metadata.accounts.setState('disabled', 'disabled')
    const remove = (idleMs: number) =>
      metadata.transaction(({ garbage }) => garbage.removeEmptyRepositories(idleMs, undefined))

    expect(await remove(hourMs)).toEqual({ removed: 0, next: undefined })
    expect(await remove(0)).toEqual({ removed: 1, next: undefined })

    expect(await metadata.repositories.find(empty.scope)).toBeUndefined()
    for (const shelf of [linked, pushed, begun, theirs]) {
      expect(await metadata.repositories.find(shelf.scope)).toBeDefined()
    }
  })

  test('more repositories without manifests than one look takes are looked at in a round, each once', async () => {
    const metadata = await open()
    const { accountId: first } = await openShelf(metadata, 'first')
    const { accountId: second, repository: middle } = await openShelf(metadata, 'second')
    await metadata.transaction(async ({ repositories }) => {
      await repositories.markAsImage(middle)
      // 998 have no manifests, and the first account's is one more. A look takes 500, so a second one that began with the last
      // repository of the first look would be full.
      for (let each = 0; each < 1497; each += 1) {
        const accountId = each % 2 === 0 ? second : first
        const made = await repositories.ensure({ accountId, repository: `app-${each}` as never })
        if (each % 3 === 0) await repositories.markAsImage(made)
      }
    })
    const listed = async () => [
      ...(await metadata.repositories.list(first, undefined, 2_000)),
      ...(await metadata.repositories.list(second, undefined, 2_000)),
    ]
    const before = await listed()
    const removed: number[] = []

    let next: RepositoryRow | undefined
    do {
      const batch = await metadata.transaction(({ garbage }) => garbage.removeEmptyRepositories(0, next))
      removed.push(batch.removed)
      next = batch.next
    } while (next !== undefined && removed.length < 10)

    expect(removed).toHaveLength(2)
    expect(removed.reduce((sum, count) => sum + count, 0)).toBe(999)
    expect(await listed()).toEqual(before)
  })
}
