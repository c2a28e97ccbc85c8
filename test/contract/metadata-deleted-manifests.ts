// The contract of deleted manifests, through the use cases that push, delete, undelete and collect.
import { expect, test } from 'bun:test'
import type { Digest } from '../../src/oci/digest.ts'
import {
  expireDeletedManifests,
  listDeletedManifests,
  undeleteManifest,
  undeleteRepository,
} from '../../src/registry/deleted-manifests.ts'
import { removeEmptyRepositories, trashUnusedBlobs } from '../../src/registry/garbage-selection.ts'
import { pushManifest } from '../../src/registry/manifest-push.ts'
import { deleteManifest } from '../../src/registry/manifests.ts'
import { foldUsage } from '../../src/registry/usage.ts'
import { digestOf, imageOf, indexOf, type Manifest } from '../support/api/api-images.ts'
import { errorOf } from '../support/basics/outcomes.ts'
import {
  hourMs,
  longAges,
  noAges,
  openShelf,
  passTime,
  type Shelf,
  tagChange,
  tagged,
} from '../support/stores/metadata-rows.ts'
import { freshKey } from '../support/stores/stored-objects.ts'
import type { OpenMetadataStore } from './metadata-store.ts'

const settings = {
  missingContent: 'reject',
  additionalMediaTypes: [],
  tagsPerPushMax: 10,
  undeleteMs: hourMs,
  manifestBytesMax: 1_000_000,
  jsonDepthMax: 32,
  descriptorsMax: 100,
  annotationsMax: 10,
  annotationBytesMax: 1000,
  referrersBytesMax: 1_000_000,
} as const
const disk = { isLow: () => false, isVeryLow: () => false }
const hasEnded = () => false
const { actor } = tagChange

const [a, b] = ['base', 'other'].map((layer) => imageOf({ config: layer, layers: ['shared', layer] })) as [
  Manifest,
  Manifest,
]
/** By letter: two images that share a layer, a referrer, and an index of the images. */
const manifests: Readonly<Record<string, Manifest>> = {
  a,
  b,
  r: imageOf({ config: 'signature', subject: a.descriptor, annotations: { note: 'ü "quoted"' } }),
  i: indexOf([a.descriptor, b.descriptor]),
}
const blobsOf: Readonly<Record<string, readonly string[]>> = {
  a: ['base', 'shared'],
  b: ['other', 'shared'],
  r: ['signature'],
  i: [],
}
const letterOf = (digest: string) => Object.keys(manifests).find((one) => manifests[one]?.digest === digest) ?? digest
const digestOfLetter = (letter: string) => (manifests[letter] ?? a).digest as Digest

/** Stores the blobs of the manifest that the repository does not have, and then the manifest. */
async function push({ metadata, scope, repository }: Shelf, letter: string, tag: string): Promise<void> {
  await metadata.transaction(async ({ blobs }) => {
    for (const text of blobsOf[letter] ?? []) {
      const digest = digestOf(text) as Digest
      const content = { sizeBytes: text.length, key: freshKey(), inlineBytes: undefined }
      const blob =
        (await blobs.findLocked(repository.accountId, digest)) ??
        (await blobs.add(repository.accountId, digest, content))
      await blobs.link(repository, blob?.id ?? 0, digest)
    }
  })
  const { bytes, mediaType } = manifests[letter] ?? a
  await pushManifest({ metadata, disk, settings }, scope, {
    actor,
    reference: { tag: tagged(tag) },
    tags: [],
    mediaType,
    bytes: new TextEncoder().encode(bytes),
  })
}

const remove = ({ metadata, scope }: Shelf, letter: string, undeleteMs: number = hourMs) =>
  deleteManifest({ metadata, settings: { ...settings, undeleteMs } }, scope, digestOfLetter(letter), actor)
const undelete = ({ metadata, scope }: Shelf, letter: string) =>
  undeleteManifest({ metadata, disk, settings }, scope, digestOfLetter(letter), actor)
/** As the collector, when every lease is over. */
async function collect(shelf: Shelf, undeleteMs: number = hourMs): Promise<void> {
  await passTime()
  await expireDeletedManifests(shelf, { undeleteMs }, hasEnded)
  await trashUnusedBlobs(shelf, noAges, hasEnded)
}
const deletedOf = async (shelf: Shelf) =>
  (await listDeletedManifests(shelf, shelf.scope, { before: undefined, limit: 100 })).items.map(
    ({ digest, tags, cause, deletedBy }) => [letterOf(digest), tags.join(' '), cause, deletedBy],
  )
const tagOf = async ({ metadata, scope }: Shelf, tag: string) =>
  letterOf((await metadata.manifests.describe(scope, { tag: tagged(tag) }))?.digest ?? 'none')

export function deletedManifestsContract(open: OpenMetadataStore): void {
  test('come back with their tags and blobs, as in a model, after any pushes, deletions and collections', async () => {
    const shelf = await openShelf(await open())
    const stored = new Set<string>()
    const tags = new Map<string, string>()
    const deleted = new Map<string, readonly string[]>()
    let seed = 11
    const draw = (count: number) => {
      seed = (seed * 1103515245 + 12345) % 2147483648
      return Math.floor((seed / 2147483648) * count)
    }
    const isListed = (letter: string) => 'ab'.includes(letter) && stored.has('i')
    const bringBack = (letter: string) => {
      if (letter === 'i') for (const child of 'ab') if (!stored.has(child)) bringBack(child)
      for (const tag of deleted.get(letter) ?? []) if (!tags.has(tag)) tags.set(tag, letter)
      deleted.delete(letter)
      stored.add(letter)
    }
    for (let step = 0; step < 160; step += 1) {
      const letter = 'abri'[draw(4)] ?? 'a'
      const action = draw(8)
      const tag = `t${draw(3)}`
      if (action < 3 && (letter !== 'i' || (stored.has('a') && stored.has('b')))) {
        await push(shelf, letter, tag)
        stored.add(letter)
        tags.set(tag, letter)
      } else if (action < 5 && stored.has(letter) && !isListed(letter)) {
        await remove(shelf, letter)
        const its = [...tags].flatMap(([name, of]) => (of === letter ? name : [])).sort()
        for (const one of its) tags.delete(one)
        stored.delete(letter)
        deleted.set(letter, its)
      } else if (action < 7 && deleted.has(letter)) {
        await undelete(shelf, letter)
        bringBack(letter)
      } else if (action === 7) {
        await collect(shelf)
        const used = new Set([...stored, ...deleted.keys()].flatMap((one) => blobsOf[one] ?? []))
        expect([step, (await shelf.metadata.accounts.measure(shelf.accountId)).blobs]).toEqual([step, used.size])
      }
      const seen = (await deletedOf(shelf)).map(([one, its]) => `${one}:${its}`).sort()
      expect([step, ...seen]).toEqual([step, ...[...deleted].map(([one, its]) => `${one}:${its.join(' ')}`).sort()])
      for (const name of ['t0', 't1', 't2']) expect(await tagOf(shelf, name)).toBe(tags.get(name) ?? 'none')
      expect((await shelf.metadata.usage.findOfAccount(shelf.accountId)).images).toBe(stored.size > 0 ? 1 : 0)
    }
    await collect(shelf, 0)
    expect(await deletedOf(shelf)).toEqual([])
    const left = new Set([...stored].flatMap((one) => blobsOf[one] ?? []))
    expect((await shelf.metadata.accounts.measure(shelf.accountId)).blobs).toBe(left.size)
  })

  test('keep their bytes and what they say; without a period there is no copy', async () => {
    const shelf = await openShelf(await open())
    await push(shelf, 'a', 'latest')
    await push(shelf, 'r', 'signature')
    const find = async () => {
      const found = await shelf.metadata.manifests.find(shelf.scope, { digest: digestOfLetter('r') })
      return [found?.mediaType, found?.sizeBytes, new TextDecoder().decode(found?.bytes)]
    }
    const before = await find()
    const referrers = () =>
      shelf.metadata.manifests.listReferrers(shelf.scope, {
        subject: digestOfLetter('a'),
        artifactTypes: [],
        after: undefined,
        limit: 10,
        bytesMax: 10_000,
      })
    const listed = await referrers()
    await remove(shelf, 'r')
    expect((await referrers()).referrers).toEqual([])
    expect(await deletedOf(shelf)).toEqual([['r', 'signature', 'manifest deleted', actor.subject]])

    await undelete(shelf, 'r')
    expect(await find()).toEqual(before)
    expect(await referrers()).toEqual(listed)

    await remove(shelf, 'a', 0)
    expect(await deletedOf(shelf)).toEqual([])
    expect(await errorOf(undelete(shelf, 'a'))).toMatchObject({ refusal: 'manifest-unknown' })
  })

  test('keep their repository, are listed page by page, and are not expired for a disabled account', async () => {
    const shelf = await openShelf(await open())
    for (const letter of ['a', 'b', 'r']) {
      await push(shelf, letter, letter)
      await remove(shelf, letter)
      await passTime()
    }
    const listPage = (before: Parameters<typeof listDeletedManifests>[2]['before']) =>
      listDeletedManifests(shelf, shelf.scope, { before, limit: 2 })
    const first = await listPage(undefined)
    const rest = await listPage(first.items.at(-1))
    expect([first.hasMore, rest.hasMore]).toEqual([true, false])
    expect([...first.items, ...rest.items].map(({ digest }) => letterOf(digest))).toEqual(['r', 'b', 'a'])

    await shelf.metadata.accounts.setState('acme', 'disabled')
    expect(await expireDeletedManifests(shelf, noAges, hasEnded)).toBe(0)
    await shelf.metadata.accounts.setState('acme', 'enabled')
    expect(await expireDeletedManifests(shelf, longAges, hasEnded)).toBe(0)
    await shelf.metadata.transaction(({ tagHistory }) => tagHistory.removeSuperseded(0, undefined, 100))
    await collect(shelf)
    await removeEmptyRepositories(shelf, noAges, hasEnded)
    expect((await deletedOf(shelf)).length).toBe(3)
    await collect(shelf, 0)
    await foldUsage(shelf)
    await removeEmptyRepositories(shelf, noAges, hasEnded)
    expect(await shelf.metadata.repositories.find(shelf.scope)).toBeUndefined()
  })

  test('come back together if the whole repository was deleted, without those that were deleted before', async () => {
    const shelf = await openShelf(await open())
    for (const letter of ['a', 'b', 'i', 'r']) await push(shelf, letter, letter)
    await remove(shelf, 'r')
    await shelf.metadata.transaction(async ({ manifests: table, tags, deletedManifests }) => {
      for (const letter of ['i', 'a', 'b']) {
        const id = (await table.findLocked(shelf.repository, digestOfLetter(letter))) ?? 0
        const its = await tags.removeAllOf(shelf.repository, id, tagChange)
        await deletedManifests.keep(shelf.repository, id, { actor, cause: 'repository deleted', tags: its })
        await table.remove(shelf.repository, id)
      }
    })
    await collect(shelf)

    const undeleted = await undeleteRepository({ ...shelf, disk, settings }, shelf.scope, actor)

    expect(undeleted.manifests.map(letterOf).sort()).toEqual(['a', 'b', 'i'])
    expect([undeleted.tags.toSorted().join(''), undeleted.refused, undeleted.hasMore]).toEqual(['abi', [], false])
    expect((await deletedOf(shelf)).map(([letter]) => letter)).toEqual(['r'])
  })
}
