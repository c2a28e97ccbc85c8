// The contract of turns: one writer at a time, and one that lost its turn is fenced off.
import { expect, test } from 'bun:test'
import { digestOf } from '../support/basics/generated-bytes.ts'
import { freshUploadId, hourMs, openShelf } from '../support/stores/metadata-rows.ts'
import { freshKey } from '../support/stores/stored-objects.ts'
import type { OpenMetadataStore } from './metadata-store.ts'

async function openUpload(open: OpenMetadataStore, firstTurnMs = 0) {
  const shelf = await openShelf(await open())
  const { metadata, repository, owner } = shelf
  const upload = await metadata.transaction((tables) =>
    tables.uploads.create(repository, owner.subject, freshUploadId(), freshKey(), firstTurnMs),
  )
  const claim = (turnMs: number) => metadata.uploads.claimTurn(owner, upload.id, turnMs)
  const claimed = async (turnMs: number) => {
    const writer = await claim(turnMs)
    if (writer === undefined) throw new Error('the turn was not free')
    return writer
  }
  const stands = async () => {
    const state = await metadata.uploads.find(owner, upload.id)
    return state !== undefined && 'open' in state ? state.open.object : undefined
  }
  return { uploads: metadata.uploads, metadata, upload, claim, claimed, stands }
}

export function uploadTurnsContract(open: OpenMetadataStore): void {
  taking(open)
  fencing(open)
}

function taking(open: OpenMetadataStore): void {
  test('are taken by one writer, and by no other before they are released', async () => {
    const { uploads, claim, claimed } = await openUpload(open)

    const first = await claimed(hourMs)
    expect(await claim(hourMs)).toBeUndefined()
    expect(await uploads.releaseTurn(first, { sizeBytes: 10, notes: 'a note' }, undefined)).toBe(true)
    const second = await claimed(hourMs)

    expect(second.object).toEqual({ sizeBytes: 10, notes: 'a note' })
    expect(second.epoch).toBeGreaterThan(first.epoch)
  })

  test('are taken by exactly one of many concurrent callers', async () => {
    const { claim } = await openUpload(open)

    const claims = await Promise.all(Array.from({ length: 20 }, () => claim(hourMs)))

    expect(claims.filter((writer) => writer !== undefined)).toHaveLength(1)
  })

  test('belong to the maker of the session if it asked for the first one', async () => {
    const { uploads, upload, claim } = await openUpload(open, hourMs)

    expect(await claim(hourMs)).toBeUndefined()
    expect(await uploads.releaseTurn(upload, { sizeBytes: 3, notes: undefined }, undefined)).toBe(true)
    expect((await claim(hourMs))?.object.sizeBytes).toBe(3)
  })

  test('are free again when their time is over', async () => {
    const { claim, claimed } = await openUpload(open)
    await claimed(1)
    await Bun.sleep(20)

    expect(await claim(hourMs)).toBeDefined()
  })

  test('that are kept are not free when their first time is over', async () => {
    const { uploads, claim, claimed } = await openUpload(open)
    const writer = await claimed(200)

    expect(await uploads.renewTurn(writer, hourMs)).toBe(true)
    await Bun.sleep(250)

    expect(await claim(hourMs)).toBeUndefined()
  })

  test('return what was recorded last as the state of the session', async () => {
    const { uploads, claimed, stands } = await openUpload(open)

    expect(await stands()).toEqual({ sizeBytes: 0, notes: undefined })
    await uploads.releaseTurn(
      await claimed(hourMs),
      { sizeBytes: 5_000_000_000, notes: 'x'.repeat(100_000) },
      undefined,
    )

    expect(await stands()).toEqual({ sizeBytes: 5_000_000_000, notes: 'x'.repeat(100_000) })
  })

  test('may end with what stood before, which drops what was written in between', async () => {
    const { uploads, claimed, stands } = await openUpload(open)
    await uploads.releaseTurn(await claimed(hourMs), { sizeBytes: 5, notes: undefined }, undefined)

    const writer = await claimed(hourMs)
    await uploads.releaseTurn(writer, writer.object, undefined)

    expect(await stands()).toEqual({ sizeBytes: 5, notes: undefined })
  })
}

function fencing(open: OpenMetadataStore): void {
  test('that were lost can neither be kept nor ended, and leave no mark', async () => {
    const { uploads, metadata, claimed, stands } = await openUpload(open)
    const lost = await claimed(1)
    await Bun.sleep(20)
    const current = await claimed(hourMs)

    expect(await uploads.renewTurn(lost, hourMs)).toBe(false)
    expect(await uploads.releaseTurn(lost, { sizeBytes: 999, notes: 'wrong' }, undefined)).toBe(false)
    expect(await metadata.transaction((tables) => tables.uploads.commit(lost, digestOf('wrong')))).toBe(false)
    expect(await stands()).toEqual({ sizeBytes: 0, notes: undefined })

    expect(await uploads.releaseTurn(current, { sizeBytes: 4, notes: undefined }, undefined)).toBe(true)
    expect(await uploads.releaseTurn(lost, { sizeBytes: 999, notes: 'wrong' }, undefined)).toBe(false)
    expect(await stands()).toEqual({ sizeBytes: 4, notes: undefined })
  })

  test('that ran out but that no other writer took can still be ended', async () => {
    const { uploads, claimed, stands } = await openUpload(open)
    const slow = await claimed(1)
    await Bun.sleep(20)

    expect(await uploads.releaseTurn(slow, { sizeBytes: 8, notes: undefined }, undefined)).toBe(true)
    expect((await stands())?.sizeBytes).toBe(8)
  })

  test('are all over when a server begins that is the only one of its store', async () => {
    const { uploads, claimed, claim, stands } = await openUpload(open)
    const dead = await claimed(hourMs)
    await uploads.releaseAllTurns()

    expect(await claim(hourMs)).toBeDefined()
    expect(await uploads.releaseTurn(dead, { sizeBytes: 9, notes: undefined }, undefined)).toBe(false)
    expect((await stands())?.sizeBytes).toBe(0)
  })

  test('of the session as it was begun are lost to the first claim', async () => {
    const { uploads, upload, claimed } = await openUpload(open)
    await claimed(hourMs)

    expect(await uploads.releaseTurn(upload, { sizeBytes: 1, notes: undefined }, undefined)).toBe(false)
  })
}
