// Deletions of images, tags and repositories: what they tell in a dry run, do, and free. Through the use cases.
import { expect, test } from 'bun:test'
import type { Digest } from '../../src/oci/digest.ts'
import { parseTagPattern, type TagPattern } from '../../src/oci/tag-pattern.ts'
import { companionTagsOf } from '../../src/registry/deletion-plan.ts'
import { trashUnusedBlobs } from '../../src/registry/garbage-selection.ts'
import { type DeletionReport, deleteImage, deleteRepository, deleteTags } from '../../src/registry/image-deletion.ts'
import { storeManifest } from '../../src/registry/manifest-push.ts'
import { errorOf } from '../support/basics/outcomes.ts'
import {
  type AddedBlob,
  type AddedManifest,
  addBlob,
  hourMs,
  manifestOf,
  noAges,
  openShelf,
  passTime,
  type Shelf,
  tagChange,
  tagged,
} from '../support/stores/metadata-rows.ts'
import type { OpenMetadataStore } from './metadata-store.ts'

const settings = { missingContent: 'reject', undeleteMs: 0, leaseMs: hourMs, quarantineMs: hourMs } as const
const { actor } = tagChange
const wet = {
  isDryRun: false,
  withCompanions: true,
  withImages: true,
  mayDeleteImmutable: true,
}
const dry = { ...wet, isDryRun: true }

interface Stored extends AddedManifest {
  readonly kind: 'image' | 'index' | 'referrer'
  readonly blobs: readonly AddedBlob[]
  readonly children: readonly Stored[]
  readonly subject: Stored | undefined
  readonly tags: Set<string>
}

async function push(
  shelf: Shelf,
  text: string,
  {
    blobs = [],
    children = [],
    subject,
    tags = [],
  }: {
    readonly blobs?: readonly AddedBlob[]
    readonly children?: readonly AddedManifest[]
    readonly subject?: Digest | undefined
    readonly tags?: readonly string[]
  },
): Promise<AddedManifest> {
  const manifest = manifestOf(text, { subject })
  const entries = [
    ...blobs.map(({ id, digest }) => ({ digest, blobId: id, childId: undefined })),
    ...children.map(({ id, digest }) => ({ digest, blobId: undefined, childId: id })),
  ]
  const { id, isNew } = await shelf.metadata.transaction((tables) =>
    storeManifest(tables, shelf.repository, manifest, entries, tags.map(tagged), tagChange),
  )
  return { id, isNew, digest: manifest.digest }
}

/** A repository, a second one that shares blobs with it, and what a deletion should do, found by looking at everything. */
class Model {
  readonly stored: Stored[] = []
  readonly elsewhere = new Set<AddedBlob>()
  readonly sizes = new Map<AddedBlob, number>()

  readonly shelf: Shelf

  constructor(shelf: Shelf) {
    this.shelf = shelf
  }

  async add(text: string, of: Partial<Omit<Stored, 'tags'>> & { readonly tags?: readonly string[] }): Promise<Stored> {
    const { blobs = [], children = [], subject, kind = 'image', tags = [] } = of
    const added = await push(this.shelf, text, { blobs, children, subject: subject?.digest, tags })
    const stored = { ...added, kind, blobs, children, subject, tags: new Set(tags) }
    this.stored.push(stored)
    return stored
  }

  companionsOf(root: Stored): Set<Stored> {
    const going = new Set([root])
    const isListed = (one: Stored) => this.stored.some((index) => index.children.includes(one) && !going.has(index))
    for (let before = 0; before !== going.size; ) {
      before = going.size
      for (const one of this.stored) {
        if (isListed(one)) continue
        const isOrphan = one.tags.size === 0 && [...going].some(({ children }) => children.includes(one))
        const isReferrer = one.subject !== undefined && going.has(one.subject)
        const companionTags = [...going].flatMap(({ digest }) => companionTagsOf(digest) as string[])
        const isCompanion = one.tags.size === 1 && companionTags.some((tag) => one.tags.has(tag))
        if (isOrphan || isReferrer || isCompanion) going.add(one)
      }
    }
    return going
  }

  bytesOf(going: ReadonlySet<Stored>): number {
    const kept = new Set(this.stored.filter((one) => !going.has(one)).flatMap(({ blobs }) => blobs))
    const freed = new Set([...going].flatMap(({ blobs }) => blobs))
    return [...freed]
      .filter((blob) => !kept.has(blob) && !this.elsewhere.has(blob))
      .reduce((sum, blob) => sum + (this.sizes.get(blob) ?? 0), 0)
  }

  remove(going: ReadonlySet<Stored>): void {
    for (const one of going) this.stored.splice(this.stored.indexOf(one), 1)
  }
}

async function fill(shelf: Shelf, draw: (count: number) => number): Promise<Model> {
  const model = new Model(shelf)
  const blobs: AddedBlob[] = []
  for (let at = 0; at < 8; at += 1) {
    const text = `blob ${'x'.repeat(2 ** at)}`
    const blob = await addBlob(shelf, text)
    blobs.push(blob)
    model.sizes.set(blob, text.length)
  }
  const someBlobs = () => blobs.filter(() => draw(4) === 0)
  for (let at = 0; at < 6; at += 1) {
    await model.add(`image ${at}`, { blobs: someBlobs(), tags: draw(2) === 0 ? [`v${at}`, `w${at}`] : [] })
  }
  const images = [...model.stored]
  for (let at = 0; at < 3; at += 1) {
    await model.add(`index ${at}`, { kind: 'index', children: images.filter(() => draw(3) === 0), tags: [`i${at}`] })
  }
  for (let at = 0; at < 5; at += 1) {
    const subject = model.stored[draw(model.stored.length)]
    await model.add(`referrer ${at}`, { kind: 'referrer', subject, blobs: someBlobs() })
  }
  const signed = model.stored[draw(model.stored.length)]
  const [tag = ''] = signed === undefined ? [] : companionTagsOf(signed.digest)
  await model.add('signature', { blobs: someBlobs(), tags: [tag] })
  const other = await openShelf(shelf.metadata, 'acme', 'other')
  for (const blob of someBlobs()) {
    await shelf.metadata.transaction((tables) => tables.blobs.link(other.repository, blob.id, blob.digest))
    await push(other, `elsewhere ${blob.id}`, { blobs: [blob] })
    model.elsewhere.add(blob)
  }
  await collect(shelf)
  return model
}

/** Bytes of the blobs that the account has when all leases are over. */
async function collect({ metadata, accountId }: Shelf): Promise<number> {
  await passTime()
  await trashUnusedBlobs({ metadata }, noAges, () => false)
  return (await metadata.accounts.measure(accountId)).blobBytes
}

const digestsOf = (items: Iterable<{ readonly digest: string }>) => [...items].map(({ digest }) => digest).sort()
/** Without what differs between a dry run and the deletion. */
const comparable = ({ isDryRun: _, freedAt: __, undeletableUntil: ___, ...report }: DeletionReport) => report

async function storedOf({ metadata, repository }: Shelf): Promise<string[]> {
  return digestsOf(await metadata.deletionPreviews.list(repository, '', 1000))
}

export function deletionsContract(open: OpenMetadataStore): void {
  test('an image goes with its companions as in a model, as the dry run told, and frees the bytes that it told', async () => {
    let seed = 5
    const draw = (count: number) => {
      seed = (seed * 1103515245 + 12345) % 2147483648
      return Math.floor((seed / 2147483648) * count)
    }
    for (let round = 0; round < 4; round += 1) {
      const shelf = await openShelf(await open())
      const needs = { metadata: shelf.metadata, settings }
      const model = await fill(shelf, draw)
      for (let step = 0; step < 4; step += 1) {
        const free = model.stored.filter((one) => !model.stored.some(({ children }) => children.includes(one)))
        const root = free[draw(free.length)]
        if (root === undefined) break
        const going = model.companionsOf(root)
        const told = await deleteImage(needs, shelf.scope, root.digest, dry, actor)
        expect(digestsOf(told.manifests)).toEqual(digestsOf(going))
        expect(told.freedBytes).toBe(model.bytesOf(going))
        expect(await storedOf(shelf)).toEqual(digestsOf(model.stored))

        const before = await collect(shelf)
        const done = await deleteImage(needs, shelf.scope, root.digest, wet, actor)
        model.remove(going)
        expect(comparable(done)).toEqual(comparable(told))
        expect(await storedOf(shelf)).toEqual(digestsOf(model.stored))
        expect(before - (await collect(shelf))).toBe(told.freedBytes)
      }
      const all = new Set(model.stored)
      const bytes = model.bytesOf(all)
      const before = await collect(shelf)
      const told = await deleteRepository(needs, shelf.scope, dry, actor)
      const done = await deleteRepository(needs, shelf.scope, wet, actor)
      expect([told.freedBytes, done.freedBytes, before - (await collect(shelf))]).toEqual([bytes, bytes, bytes])
      expect([digestsOf(done.manifests), await storedOf(shelf)]).toEqual([digestsOf(all), []])
    }
  }, 60_000)

  test('without companions they stay, and are listed', async () => {
    const shelf = await openShelf(await open())
    const needs = { metadata: shelf.metadata, settings }
    const model = new Model(shelf)
    const [child, both] = [await model.add('child', {}), await model.add('both', { tags: ['both'] })]
    const index = await model.add('index', { children: [child, both], tags: ['latest'] })
    const sbom = await model.add('sbom', { subject: index })
    const remove = { ...wet, withCompanions: false }

    expect(await errorOf(deleteImage(needs, shelf.scope, child.digest, dry, actor))).toMatchObject({
      refusal: 'manifest-in-use',
    })
    const report = await deleteImage(needs, shelf.scope, index.digest, remove, actor)
    expect(report.tags).toEqual([{ tag: tagged('latest'), digest: index.digest }])
    expect(report.children.map(({ digest, isUntagged }) => [digest, isUntagged]).sort()).toEqual(
      [
        [child.digest, true],
        [both.digest, false],
      ].sort(),
    )
    expect(report.referrers).toEqual([{ digest: sbom.digest, artifactType: undefined, subject: index.digest }])
    expect(await storedOf(shelf)).toEqual(digestsOf([child, both, sbom]))
  })

  test('tags go by pattern, alone or with the images that have no other tag', async () => {
    const shelf = await openShelf(await open())
    const needs = { metadata: shelf.metadata, settings }
    const model = new Model(shelf)
    const pr1 = await model.add('pr 1', { tags: ['pr-1', 'pr-1-debug'] })
    const pr2 = await model.add('pr 2', { tags: ['pr-2', 'keep'] })
    const pr3 = await model.add('pr 3', { tags: ['pr-3'] })
    const index = await model.add('index', { children: [pr3], tags: ['release', 'pr', 'zz'] })
    const select = (text: string) => ({ pattern: parseTagPattern(text) as TagPattern, after: undefined })
    const namesOf = (report: DeletionReport) => report.tags.map(({ tag }) => tag as string)

    const told = await deleteTags(needs, shelf.scope, select('pr-*'), dry, actor)
    expect(namesOf(told)).toEqual(['pr-1', 'pr-1-debug', 'pr-2', 'pr-3'])
    expect(digestsOf(told.manifests)).toEqual([pr1.digest])
    expect(told.otherTags.map(({ tag }) => tag as string)).toEqual(['keep'])
    expect(digestsOf(told.listed)).toEqual([pr3.digest])
    const done = await deleteTags(needs, shelf.scope, select('pr-*'), wet, actor)
    expect(comparable(done)).toEqual(comparable(told))
    expect(await storedOf(shelf)).toEqual(digestsOf([pr2, pr3, index]))

    const alone = { ...wet, withImages: false, mayDeleteImmutable: true }
    expect(namesOf(await deleteTags(needs, shelf.scope, select('pr*'), alone, actor))).toEqual(['pr'])
    const named = await deleteTags(needs, shelf.scope, { tags: ['keep', 'none', 'keep'].map(tagged) }, alone, actor)
    expect([namesOf(named), digestsOf(named.untagged), named.manifests]).toEqual([['keep'], [pr2.digest], []])
    expect(await storedOf(shelf)).toEqual(digestsOf([pr2, pr3, index]))
  })

  test('many tags and manifests go in portions, and a repetition goes on', async () => {
    const shelf = await openShelf(await open())
    const { metadata, repository, scope } = shelf
    const needs = { metadata, settings }
    for (let at = 0; at < 620; at += 1) await push(shelf, `image ${at}`, { tags: [`a-${at}`, `b-${at}`] })
    const all = { pattern: parseTagPattern('?-*') as TagPattern, after: undefined }
    const alone = {
      isDryRun: false,
      withCompanions: false,
      withImages: false,
      mayDeleteImmutable: true,
    }

    const first = await deleteTags(needs, scope, all, alone, actor)
    expect([first.tags.length, first.hasMore]).toEqual([1_000, true])
    const second = await deleteTags(needs, scope, { ...all, after: first.last }, alone, actor)
    expect([second.tags.length, second.hasMore, await metadata.tags.list(repository, undefined, 1)]).toEqual([
      240,
      false,
      [],
    ])
    const told = await deleteRepository(needs, scope, dry, actor)
    expect([told.manifests.length, told.hasMore]).toEqual([500, true])
    for (const left of [120, 0]) {
      const report = await deleteRepository(needs, scope, wet, actor)
      expect([report.hasMore, (await storedOf(shelf)).length]).toEqual([left > 0, left])
    }
  }, 60_000)
}
