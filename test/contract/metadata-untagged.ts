// The contract of untagged manifests, through the use cases that push and delete.
import { expect, test } from 'bun:test'
import type { Digest } from '../../src/oci/digest.ts'
import type { MetadataStore } from '../../src/ports/metadata-store.ts'
import { pushManifest } from '../../src/registry/manifest-push.ts'
import { deleteManifest } from '../../src/registry/manifests.ts'
import { deleteTag } from '../../src/registry/tags.ts'
import { listUntagged, removeUntagged } from '../../src/registry/untagged.ts'
import { imageOf, indexOf, type Manifest } from '../support/api/api-images.ts'
import { addManifest, openShelf, passTime, type Shelf, tagChange, tagged } from '../support/stores/metadata-rows.ts'
import { pushNeeds } from '../support/stores/push-needs.ts'
import type { OpenMetadataStore } from './metadata-store.ts'

const hasEnded = () => false

const images = ['one', 'two', 'three'].map((config) => imageOf({ config }))
const [one, two, three] = images as [Manifest, Manifest, Manifest]
const subjectOf = (subject: Manifest, config: string) => imageOf({ config, subject: subject.descriptor })
const referrer = subjectOf(one, 'of one')
/** By letter: three images, two indexes, a referrer and a referrer of the referrer. */
const manifests: Readonly<Record<string, Manifest>> = {
  a: one,
  b: two,
  c: three,
  i: indexOf([one.descriptor, two.descriptor]),
  j: indexOf([two.descriptor, three.descriptor]),
  r: referrer,
  s: subjectOf(referrer, 'of the referrer'),
}
const letterOf = (digest: string) =>
  Object.keys(manifests).find((letter) => manifests[letter]?.digest === digest) ?? digest
const listsOf: Readonly<Record<string, string>> = { i: 'ab', j: 'bc' }
const subjects: Readonly<Record<string, string>> = { r: 'a', s: 'r' }

/** What is stored, and which tags there are. Finds the untagged manifests by looking at everything. */
class Model {
  readonly stored = new Set<string>()
  readonly tags = new Map<string, string>()

  untagged(): string {
    const isKept = (letter: string) =>
      [...this.tags.values()].includes(letter) ||
      ['i', 'j'].some((index) => this.stored.has(index) && listsOf[index]?.includes(letter)) ||
      this.stored.has(subjects[letter] ?? '')
    return [...this.stored]
      .filter((letter) => !isKept(letter))
      .sort()
      .join('')
  }

  remove(letter: string): void {
    this.stored.delete(letter)
    for (const [tag, of] of this.tags) if (of === letter) this.tags.delete(tag)
  }
}

const push = (metadata: MetadataStore, { scope }: Shelf, letter: string, tags: readonly string[] = []) => {
  const { bytes, mediaType, digest } = manifests[letter] ?? one
  return pushManifest({ metadata, ...pushNeeds }, scope, {
    ...tagChange,
    reference: { digest: digest as Digest },
    tags: tags.map(tagged),
    mediaType,
    bytes: new TextEncoder().encode(bytes),
  })
}

async function lettersOf(shelf: Shelf): Promise<string> {
  const page = await listUntagged(shelf, shelf.scope, { after: undefined, limit: 100 })
  return page.items
    .map(({ digest }) => letterOf(digest))
    .sort()
    .join('')
}

export function untaggedContract(open: OpenMetadataStore): void {
  test('are those of a model, after any pushes, moves, deletions and collections', async () => {
    const shelf = await openShelf(await open())
    const { metadata, scope } = shelf
    const model = new Model()
    const letters = Object.keys(manifests)
    let seed = 7
    const draw = (count: number) => {
      seed = (seed * 1103515245 + 12345) % 2147483648
      return Math.floor((seed / 2147483648) * count)
    }
    for (let step = 0; step < 150; step += 1) {
      const letter = letters[draw(letters.length)] ?? 'a'
      const tag = `t${draw(3)}`
      const action = draw(10)
      if (action < 3) await push(metadata, shelf, letter)
      else if (action < 6) {
        await push(metadata, shelf, letter, [tag])
        model.tags.set(tag, letter)
      } else if (action < 8 && model.tags.delete(tag)) await deleteTag(shelf, scope, tagged(tag), tagChange.actor)
      else if (action === 8 && model.stored.has(letter)) {
        await deleteManifest({ metadata, ...pushNeeds }, scope, manifests[letter]?.digest as Digest, tagChange.actor)
        model.remove(letter)
      } else if (action === 9) {
        // It removes nothing, because nothing is old enough, but takes candidates off the list that are not untagged.
        await removeUntagged(shelf, { untaggedMs: 3_600_000, tagHistoryMs: 0, undeleteMs: 0 }, hasEnded)
      }
      if (action < 6) model.stored.add(letter)

      expect([step, await lettersOf(shelf)]).toEqual([step, model.untagged()])
    }
  })

  test('are removed when they are old enough, with what only they led to, and later if they had a tag', async () => {
    const shelf = await openShelf(await open())
    const { metadata } = shelf
    await push(metadata, shelf, 'b')
    for (const letter of ['a', 'c']) await push(metadata, shelf, letter, ['latest'])
    for (const letter of ['i', 'r', 's']) await push(metadata, shelf, letter)
    await passTime()
    const ages = { untaggedMs: 1, tagHistoryMs: 3_600_000, undeleteMs: 0 }

    expect(await removeUntagged(shelf, { ...ages, untaggedMs: 0 }, hasEnded)).toBe(0)
    expect(await lettersOf(shelf)).toBe('i')
    // The index goes. Its child `b` had no tag and goes in the next collection. `a` had a tag, and keeps its referrers.
    expect(await removeUntagged(shelf, ages, hasEnded)).toBe(1)
    expect(await lettersOf(shelf)).toBe('ab')
    await passTime()
    expect(await removeUntagged(shelf, ages, hasEnded)).toBe(1)
    expect(await lettersOf(shelf)).toBe('a')
    for (const left of ['r', 's', '']) {
      await passTime()
      expect(await removeUntagged(shelf, { ...ages, tagHistoryMs: 0 }, hasEnded)).toBe(1)
      expect(await lettersOf(shelf)).toBe(left)
    }
    expect((await metadata.usage.findOfAccount(shelf.accountId)).images).toBe(1)
  })

  test('are looked at when they are new, and when they are old enough', async () => {
    const shelf = await openShelf(await open())
    const { metadata, repository } = shelf
    // The repository has one more manifest, so that it stays an image.
    await metadata.repositories.markAsImage(repository)
    for (let number = 0; number < 450; number += 1) {
      const { id } = await addManifest(shelf, `${number}`)
      await metadata.transaction(async ({ untagged, repositories }) => {
        await repositories.markAsImage(repository)
        await untagged.add(repository, id)
      })
    }
    await passTime()
    const collect = async (untaggedMs: number) => {
      const removed = await removeUntagged(shelf, { untaggedMs, tagHistoryMs: 0, undeleteMs: 0 }, hasEnded)
      return [removed, await metadata.marks.find('untagged-manifests')]
    }

    const [, position] = await collect(0)
    expect(position).toBeDefined()
    expect(await collect(3_600_000)).toEqual([0, position])
    expect(await metadata.marks.find('old-untagged-manifests')).toBeUndefined()
    expect(await collect(1)).toEqual([450, position])
  })

  test('are not removed from a disabled account', async () => {
    const shelf = await openShelf(await open())
    await push(shelf.metadata, shelf, 'a')
    await shelf.metadata.accounts.setState('acme', 'disabled')
    await passTime()

    expect(await removeUntagged(shelf, { untaggedMs: 1, tagHistoryMs: 0, undeleteMs: 0 }, hasEnded)).toBe(0)
    expect(await lettersOf(shelf)).toBe('a')
  })
}
