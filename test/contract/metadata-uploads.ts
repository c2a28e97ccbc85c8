// The contract of upload sessions and of the turns at them. A generated walk compares the store with a naive model.
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Uploads } from '../../src/ports/uploads.ts'
import { digestOf } from '../support/basics/generated-bytes.ts'
import { errorOf, outcomeOf } from '../support/basics/outcomes.ts'
import { freshUploadId, hourMs, noAges, openShelf } from '../support/stores/metadata-rows.ts'
import { freshKey } from '../support/stores/stored-objects.ts'
import type { OpenMetadataStore } from './metadata-store.ts'
import { UploadWalk, uploadStep } from './upload-model.ts'

async function walk(open: OpenMetadataStore, numRuns: number): Promise<void> {
  const property = fc.asyncProperty(fc.array(uploadStep, { minLength: 30, maxLength: 60 }), async (steps) => {
    const both = await UploadWalk.open(await open())
    for (const [index, one] of steps.entries()) {
      const [expected, actual] = await both.do(one)
      expect([index, one, actual]).toEqual([index, one, expected])
    }
    await both.compare()
  })
  await fc.assert(property, { numRuns, endOnFailure: true })
}

export function uploadsContract(open: OpenMetadataStore): void {
  async function openUpload() {
    const shelf = await openShelf(await open())
    const { metadata, repository, owner } = shelf
    const begin = () =>
      metadata.transaction(({ uploads }) => uploads.create(repository, owner.subject, freshUploadId(), freshKey(), 0))
    const upload = await begin()
    const claim = (turnMs: number) => metadata.uploads.claimTurn(owner, upload.id, turnMs)
    return { ...shelf, uploads: metadata.uploads, begin, upload, claim }
  }

  test('and turns go from state to state as the model says', () => walk(open, 8))

  test('have turns that are over when their time is over, unless they are renewed', async () => {
    const { uploads, claim } = await openUpload()
    const slow = await claim(1)
    await Bun.sleep(20)
    if (slow === undefined) throw new Error('the turn was free')
    // No other writer has claimed the turn yet.
    expect(await uploads.releaseTurn(slow, { sizeBytes: 8, notes: undefined }, undefined)).toBe(true)

    const writer = await claim(200)
    expect(writer?.object.sizeBytes).toBe(8)
    expect(writer && (await uploads.renewTurn(writer, hourMs))).toBe(true)
    await Bun.sleep(250)
    expect(await claim(hourMs)).toBeUndefined()
  })

  test('give their turn to exactly one of many concurrent callers', async () => {
    const { claim } = await openUpload()
    const claims = await Promise.all(Array.from({ length: 20 }, () => claim(hourMs)))

    expect(claims.filter((writer) => writer !== undefined)).toHaveLength(1)
  })

  test('with the same id in two accounts are two', async () => {
    const { metadata, owner, upload } = await openUpload()
    const theirs = await openShelf(metadata, 'rival')
    await metadata.transaction(async ({ uploads }) => {
      await uploads.create(theirs.repository, 'alice', upload.id, freshKey(), 0)
      await uploads.remove(owner, upload.id)
    })

    expect(await metadata.uploads.find(owner, upload.id)).toBeUndefined()
    expect(await metadata.uploads.find(theirs.owner, upload.id)).toBeDefined()
  })

  test('free their key for a blob in the transaction that commits them, and stay open if it fails', async () => {
    const { metadata, upload, owner, accountId } = await openUpload()
    const digest = digestOf('the whole')
    const commit = (fails: boolean) =>
      metadata.transaction(async ({ uploads, blobs }) => {
        await uploads.commit(upload, digest)
        const blob = await blobs.add(accountId, digest, { sizeBytes: 9, key: upload.storageKey })
        if (fails) throw new Error('changed our mind')
        return blob?.storageKey
      })

    expect(await errorOf(commit(true))).toBeInstanceOf(Error)
    expect(await metadata.uploads.find(owner, upload.id)).toEqual({ open: upload })
    expect(await commit(false)).toBe(upload.storageKey)
  })

  test('are listed with their ages, the idlest first, at most so many', async () => {
    const { uploads, begin, upload, claim } = await openUpload()
    const second = await begin()
    await Bun.sleep(20)
    await claim(hourMs)

    const all = await uploads.listOpen({ account: undefined, repository: undefined }, 10)
    expect(all.map(({ id }) => id)).toEqual([second.id, upload.id])
    expect(all[1]?.ageMs).toBeGreaterThan(all[1]?.idleMs ?? Infinity)
    expect(await uploads.listOpen({ account: undefined, repository: undefined }, 1)).toHaveLength(1)
  })

  test('expire by their age or by their idleness, at most so many at once', async () => {
    const { metadata, begin } = await openUpload()
    for (let count = 1; count < 5; count += 1) await begin()
    const expire = (uploadIdleMs: number, uploadMaxMs: number, limit: number) =>
      metadata.transaction((tables) => tables.garbage.expireUploads({ ...noAges, uploadIdleMs, uploadMaxMs }, limit))

    expect(await expire(hourMs, hourMs, 10)).toBe(0)
    expect(await expire(0, hourMs, 2)).toBe(2)
    expect(await expire(hourMs, 0, 10)).toBe(3)
  })
}

/** Stores with one fault, which the walk must find. */
const faults: Readonly<Record<string, (uploads: Uploads) => Partial<Uploads>>> = {
  'shows a session to another caller': (uploads) => ({
    find: (owner, id) => uploads.find({ ...owner, subject: 'alice' }, id),
  }),
  'lets a writer that has lost its turn renew it': (uploads) => ({
    renewTurn: async (upload, turnMs) => (await uploads.renewTurn(upload, turnMs)) || upload.epoch > 0,
  }),
  'keeps the turn of a writer that releases it': (uploads) => ({
    releaseTurn: async (upload, ...given) =>
      (await uploads.releaseTurn(upload, ...given)) && uploads.renewTurn(upload, hourMs),
  }),
}

export function uploadsControls(open: OpenMetadataStore): void {
  test.each(Object.entries(faults))('the walk finds a store that %s (control)', async (_, spoil) => {
    const openSpoiled = async () => {
      const metadata = await open()
      const { uploads } = metadata
      const spoiled = new Proxy(uploads, {
        get: (target, name) => Reflect.get(spoil(target), name) ?? Reflect.get(target, name).bind(target),
      })
      return new Proxy(metadata, {
        get: (target, name) => {
          const member = name === 'uploads' ? spoiled : Reflect.get(target, name)
          return typeof member === 'function' ? member.bind(target) : member
        },
      })
    }
    // The walk ends with the first difference that it finds.
    expect(await outcomeOf(walk(openSpoiled, 2_000))).toBe('refused')
  })
}
