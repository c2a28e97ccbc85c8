// The contract of usage, through the use cases that push, mount, delete and collect.
import { expect, test } from 'bun:test'
import { hashHex } from '../../src/lib/hashing.ts'
import type { Digest } from '../../src/oci/digest.ts'
import type { MetadataStore } from '../../src/ports/metadata-store.ts'
import type { RepositoryUsage } from '../../src/ports/usage.ts'
import { deleteBlob } from '../../src/registry/blobs.ts'
import { trashUnusedBlobs } from '../../src/registry/garbage-selection.ts'
import { deleteManifest } from '../../src/registry/manifests.ts'
import { deleteTag } from '../../src/registry/tags.ts'
import { countExisting, foldUsage } from '../../src/registry/usage.ts'
import { digestOf } from '../support/basics/generated-bytes.ts'
import { addManifest, openShelf, type Shelf, tagChange, tagged } from '../support/stores/metadata-rows.ts'
import { freshKey } from '../support/stores/stored-objects.ts'
import type { OpenMetadataStore } from './metadata-store.ts'

const settings = { missingContent: 'allow', undeleteMs: 0 } as const
const layers = ['a', 'bb', 'cccc', 'dddddddd']
const sum = (numbers: Iterable<number>) => [...numbers].reduce((one, other) => one + other, 0)

/** What three repositories of one account hold. It counts everything, each time. */
class Model {
  readonly repositories = ['app', 'web', 'base'].map(() => ({
    manifests: new Map<string, readonly string[]>(),
    tags: new Map<string, string>(),
    links: new Set<string>(),
  }))

  get stored(): ReadonlySet<string> {
    return new Set(this.repositories.flatMap(({ links }) => [...links]))
  }

  of(at: number) {
    const { manifests, tags, links } = this.#get(at)
    const isShared = (layer: string) => this.repositories.some((other, index) => index !== at && other.links.has(layer))
    const manifestBytes = sum([...manifests.keys()].map((text) => text.length))
    return {
      manifests: manifests.size,
      tags: tags.size,
      bytes: manifestBytes + sum([...links].map((layer) => layer.length)),
      ownedBytes: manifestBytes + sum([...links].filter((layer) => !isShared(layer)).map((layer) => layer.length)),
    }
  }

  account() {
    const each = this.repositories.map((_, at) => this.of(at))
    const manifestBytes = this.repositories.flatMap(({ manifests }) => [...manifests.keys()]).map((text) => text.length)
    return {
      images: each.filter(({ manifests }) => manifests > 0).length,
      manifests: sum(each.map((one) => one.manifests)),
      tags: sum(each.map((one) => one.tags)),
      logicalBytes: sum(each.map((one) => one.bytes)),
      storedBytes: sum(manifestBytes) + sum([...this.stored].map((layer) => layer.length)),
    }
  }

  #get(at: number) {
    const found = this.repositories[at]
    if (found === undefined) throw new Error(`no repository ${at}`)
    return found
  }
}

const addLayer = ({ metadata, repository }: Shelf, layer: string) =>
  metadata.transaction(async ({ blobs }) => {
    const content = { sizeBytes: layer.length, key: freshKey() }
    const digest = digestOf(layer)
    const added = await blobs.add(repository.accountId, digest, content, repository.id)
    const blob = added ?? (await blobs.findLocked(repository.accountId, digest))
    if (blob !== undefined) await blobs.link(repository, blob.id, digest)
  })

async function push(shelf: Shelf, text: string, used: readonly string[], tag: string | undefined): Promise<void> {
  const found = await Promise.all(used.map((layer) => shelf.metadata.blobs.find(shelf.scope, digestOf(layer))))
  const blobs = found.map((blob, at) => ({ id: blob?.blobId ?? 0, digest: digestOf(used[at] ?? ''), key: freshKey() }))
  await addManifest(shelf, text, { blobs, ...(tag === undefined ? {} : { tag }) })
  await shelf.metadata.transaction(({ repositories }) => repositories.markAsImage(shelf.repository))
}

const withoutTime = ({ pushedAt: _, ...usage }: RepositoryUsage) => usage

async function walk(metadata: MetadataStore, steps: number): Promise<{ model: Model; shelves: Shelf[] }> {
  const shelves = await Promise.all(['app', 'web', 'base'].map((name) => openShelf(metadata, 'acme', name)))
  const model = new Model()
  let seed = 11
  const draw = (count: number) => {
    seed = (seed * 1103515245 + 12345) % 2147483648
    return Math.floor((seed / 2147483648) * count)
  }
  for (let step = 0; step < steps; step += 1) {
    const at = draw(3)
    const [shelf, held] = [shelves[at], model.repositories[at]]
    if (shelf === undefined || held === undefined) continue
    const layer = layers[draw(layers.length)] ?? 'a'
    const [text, tag] = [`image ${draw(4)}`, draw(2) === 0 ? undefined : `t${draw(3)}`]
    const action = draw(8)
    if (action < 3) {
      await addLayer(shelf, layer)
      held.links.add(layer)
    } else if (action < 5) {
      const used = held.manifests.get(text) ?? [...held.links].slice(0, 2)
      await push(shelf, text, used, tag)
      held.manifests.set(text, used)
      if (tag !== undefined) held.tags.set(tag, text)
    } else if (action === 5) {
      if (tag !== undefined && held.tags.delete(tag)) await deleteTag(shelf, shelf.scope, tagged(tag), tagChange.actor)
    } else if (action === 6) {
      if (!held.manifests.delete(text)) continue
      await deleteManifest({ metadata, settings }, shelf.scope, digestOf(text), tagChange.actor)
      for (const [name, of] of held.tags) if (of === text) held.tags.delete(name)
    } else if (draw(2) === 0) {
      const isUsed = [...held.manifests.values()].some((used) => used.includes(layer))
      if (isUsed || !held.links.delete(layer)) continue
      await deleteBlob(shelf, shelf.scope, digestOf(layer))
    } else {
      await Bun.sleep(2)
      await trashUnusedBlobs(shelf, { leaseMs: 0 }, () => false)
      const everyUse = new Set(model.repositories.flatMap(({ manifests }) => [...manifests.values()].flat()))
      for (const one of model.repositories) {
        const uses = new Set([...one.manifests.values()].flat())
        for (const link of one.links) if (!uses.has(link) || !everyUse.has(link)) one.links.delete(link)
      }
    }
    if (draw(3) === 0) await foldUsage(shelf)
    for (const [index, each] of shelves.entries()) {
      const { ownedBytes, ...found } = withoutTime(await metadata.usage.findOfRepository(each.repository))
      const { ownedBytes: wanted, ...exact } = model.of(index)
      expect([step, index, found]).toEqual([step, index, exact])
      if (!(await metadata.usage.hasChanges())) expect([step, index, ownedBytes]).toEqual([step, index, wanted])
    }
    expect([step, await metadata.usage.findOfAccount(shelf.accountId)]).toEqual([step, model.account()])
  }
  return { model, shelves }
}

export function usageContract(open: OpenMetadataStore): void {
  test('is that of a model, after any uploads, mounts, pushes, deletions, collections and folds', async () => {
    const metadata = await open()

    const { model, shelves } = await walk(metadata, 300)

    expect(model.account().images).toBeGreaterThan(0)
    await foldUsage({ metadata })
    expect(await metadata.usage.hasChanges()).toBe(false)
    for (const [at, { repository }] of shelves.entries()) {
      expect(withoutTime(await metadata.usage.findOfRepository(repository))).toEqual(model.of(at))
    }
    // The sums are right, so a count of everything corrects nothing.
    const before = await metadata.usage.findOfAccount(shelves[0]?.accountId ?? 0)
    await metadata.transaction(({ marks }) => marks.set('usage', 'blobs 0'))
    while (await countExisting({ metadata }));
    expect(await metadata.usage.hasChanges()).toBe(false)
    expect(await metadata.usage.findOfAccount(shelves[0]?.accountId ?? 0)).toEqual(before)
  })

  test('is the sum of pushes that run at once with folds in several processes', async () => {
    const metadata = await open()
    const shelf = await openShelf(metadata)
    let isDone = false
    const folding = [0, 1].map(async () => {
      while (!isDone) {
        await foldUsage({ metadata })
        await Bun.sleep(1)
      }
    })

    await Promise.all(
      Array.from({ length: 40 }, async (_, at) => {
        const layer = hashHex('sha256', new TextEncoder().encode(`layer ${at % 30}`)).slice(0, 10)
        await addLayer(shelf, layer)
        await push(shelf, `manifest ${at + 10}`, [layer], `t${at % 20}`)
      }),
    )
    isDone = true
    await Promise.all(folding)

    const wanted = { manifests: 40, tags: 20, bytes: 40 * 11 + 30 * 10, ownedBytes: 40 * 11 + 30 * 10 }
    expect(withoutTime(await metadata.usage.findOfRepository(shelf.repository))).toEqual(wanted)
    await foldUsage({ metadata })
    expect(withoutTime(await metadata.usage.findOfRepository(shelf.repository))).toEqual(wanted)
    expect(await metadata.usage.findOfAccount(shelf.accountId)).toEqual({
      images: 1,
      manifests: 40,
      tags: 20,
      logicalBytes: 740,
      storedBytes: 740,
    })
  })

  test('leaves nothing of a transaction that fails', async () => {
    const shelf = await openShelf(await open())
    const before = await shelf.metadata.usage.findOfRepository(shelf.repository)

    const failing = shelf.metadata.transaction(async ({ manifests, tags }) => {
      const content = { digest: 'sha256:no' as Digest, mediaType: 'x', sizeBytes: 5, bytes: new Uint8Array(5) }
      const missing = { subject: undefined, artifactType: undefined, annotations: undefined }
      const { id } = await manifests.save(shelf.repository, { ...content, ...missing })
      await tags.point(shelf.repository, tagged('latest'), id, tagChange)
      throw new Error('changed our mind')
    })

    await failing.catch(() => undefined)
    expect(await shelf.metadata.usage.findOfRepository(shelf.repository)).toEqual(before)
    expect(await shelf.metadata.usage.hasChanges()).toBe(false)
  })

  test('lists repositories by name, by size and by the last push, page by page', async () => {
    const metadata = await open()
    const shelves: Shelf[] = []
    for (const [name, text] of [
      ['b', 'medium'],
      ['c', 'x'],
      ['a', 'the largest'],
      ['empty', undefined],
    ] as const) {
      const shelf = await openShelf(metadata, 'acme', name)
      shelves.push(shelf)
      if (text !== undefined) await push(shelf, text, [], undefined)
      await Bun.sleep(2)
    }
    const accountId = shelves[0]?.accountId ?? 0
    await foldUsage({ metadata })
    const names = (part: { readonly repositories: readonly { readonly name: string }[] }) =>
      part.repositories.map(({ name }) => name).join('')

    const byName = await metadata.usage.listByName(accountId, undefined, 2)
    expect([names(byName), byName.next, names(await metadata.usage.listByName(accountId, 'b', 10))]).toEqual([
      'ab',
      'b',
      'c',
    ])
    for (const [order, wanted] of [
      ['size', ['ab', 'c']],
      ['pushed', ['ac', 'b']],
    ] as const) {
      const first = await metadata.usage.listBy(order, accountId, undefined, 2)
      expect([names(first), names(await metadata.usage.listBy(order, accountId, first.next, 2))]).toEqual([...wanted])
    }
    expect(names(await metadata.usage.listBy('size', accountId + 1, undefined, 10))).toBe('')
  })

  test('tells the bytes that no manifest needs', async () => {
    const shelf = await openShelf(await open())
    for (const layer of layers) await addLayer(shelf, layer)
    await push(shelf, 'image', ['cccc'], 'latest')

    expect(await shelf.metadata.usage.findWaiting(shelf.accountId, 10)).toEqual({ bytes: 11, isExact: true })
    expect(await shelf.metadata.usage.findWaiting(shelf.accountId, 2)).toMatchObject({ isExact: false })
  })
}
