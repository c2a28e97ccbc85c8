// The contract of events, through the use cases that change content.
import { expect, test } from 'bun:test'
import type { Digest } from '../../src/oci/digest.ts'
import type { RegistryEvent } from '../../src/ports/events.ts'
import type { MetadataStore } from '../../src/ports/metadata-store.ts'
import { pushManifest } from '../../src/registry/manifest-push.ts'
import { deleteManifest } from '../../src/registry/manifests.ts'
import { restoreTag } from '../../src/registry/tag-history.ts'
import { deleteTag } from '../../src/registry/tags.ts'
import { imageOf } from '../support/api/api-images.ts'
import { addManifest, openShelf, passTime, type Shelf, tagChange, tagged } from '../support/stores/metadata-rows.ts'
import type { OpenMetadataStore } from './metadata-store.ts'

const settings = {
  missingContent: 'allow',
  additionalMediaTypes: [],
  tagsPerPushMax: 10,
  manifestBytesMax: 1_000_000,
  jsonDepthMax: 32,
  descriptorsMax: 100,
  annotationsMax: 10,
  annotationBytesMax: 1000,
  referrersBytesMax: 1_000_000,
  tagHistoryMs: 3_600_000,
  undeleteMs: 3_600_000,
} as const
const disk = { isLow: () => false, isVeryLow: () => false }
const ann = { subject: 'ann', fingerprint: 'f00d', address: '192.0.2.1' }

async function numberAll(metadata: MetadataStore, limit = 100): Promise<void> {
  while (await metadata.events.hasUnnumbered()) await metadata.transaction(({ events }) => events.number(limit))
}

const show = ({ type, tag, digest, previousDigest, cause, actor }: RegistryEvent) =>
  [type, tag, digest?.slice(7, 11), previousDigest?.slice(7, 11), cause, actor.subject]
    .map((one) => one ?? '')
    .join(' ')

/** All events of the shelf's account, oldest first, read in pages of three in both directions. */
async function eventsOf({ metadata, accountId }: Shelf): Promise<RegistryEvent[]> {
  await numberAll(metadata, 2)
  const found: RegistryEvent[] = []
  for (let page: RegistryEvent[] = [], after = 0; ; after = page.at(-1)?.position ?? 0) {
    page = await metadata.events.listAfter(accountId, after, 3)
    if (page.length === 0) break
    found.push(...page)
  }
  const backwards: RegistryEvent[] = []
  for (let page: RegistryEvent[] = [], before: number | undefined; ; before = page.at(-1)?.position) {
    page = await metadata.events.listBefore(accountId, before, 3)
    if (page.length === 0) break
    backwards.push(...page)
  }
  expect(backwards.toReversed()).toEqual(found)
  return found
}

export function eventsContract(open: OpenMetadataStore): void {
  test('has every push, move and deletion with its caller, and nothing for a push that changes nothing', async () => {
    const shelf = await openShelf(await open())
    const other = await openShelf(shelf.metadata, 'zeta')
    const { metadata, scope } = shelf
    const images = ['one', 'two'].map((config) => imageOf({ config }))
    const push = (at: number, ...tags: string[]) => {
      const { bytes, mediaType, digest } = images[at] ?? imageOf({ config: 'none' })
      const reference = { digest: digest as Digest }
      const named = { actor: ann, reference, tags: tags.map(tagged), mediaType, bytes: new TextEncoder().encode(bytes) }
      return pushManifest({ metadata, disk, settings }, scope, named)
    }
    const [one, two] = images.map(({ digest }) => digest as Digest) as [Digest, Digest]
    await push(0, 'a', 'b')
    await push(0, 'a')
    await push(1, 'a')
    await deleteTag({ metadata }, scope, tagged('b'), ann)
    await restoreTag({ metadata, settings }, scope, tagged('a'), { digest: one }, { subject: 'ben' })
    await deleteManifest({ metadata, settings }, scope, one, ann)
    await addManifest(other, 'of another account', { tag: 'a' })

    const events = await eventsOf(shelf)
    const [first, second] = [one.slice(7, 11), two.slice(7, 11)]
    expect(events.map(show)).toEqual([
      `manifest.pushed  ${first}   ann`,
      `tag.created a ${first}  push ann`,
      `tag.created b ${first}  push ann`,
      `manifest.pushed  ${second}   ann`,
      `tag.moved a ${second} ${first} push ann`,
      `tag.deleted b  ${first} tag deleted ann`,
      `tag.moved a ${first} ${second} restore ben`,
      `tag.deleted a  ${first} manifest deleted ann`,
      `manifest.deleted  ${first}  manifest deleted ann`,
    ])
    expect(events[0]).toMatchObject({
      accountId: shelf.accountId,
      repository: 'app',
      actor: ann,
      data: { mediaType: images[0]?.mediaType, sizeBytes: images[0]?.bytes.length },
    })
    expect(Math.abs((events[0]?.at ?? 0) - (await metadata.now()))).toBeLessThan(60_000)
    expect((await eventsOf(other)).map(show)).toEqual([expect.stringContaining('tag.created a')])
  })

  test('is rolled back with its transaction', async () => {
    const shelf = await openShelf(await open())
    const { id } = await addManifest(shelf, 'one')
    const moving = shelf.metadata.transaction(async ({ tags, events }) => {
      await tags.point(shelf.repository, tagged('a'), id, tagChange)
      await events.add(shelf.accountId, { type: 'manifest.deleted', actor: ann })
      throw new Error('not this time')
    })

    expect(await moving.catch(String)).toContain('not this time')
    expect(await eventsOf(shelf)).toEqual([])
  })

  test('a reader that continues behind the last position misses nothing, and sees the moves of a tag in order', async () => {
    const shelf = await openShelf(await open())
    const { metadata, repository } = shelf
    const manifests = await Promise.all(Array.from({ length: 4 }, (_, at) => addManifest(shelf, `image ${at}`)))
    const [writers, moves] = [6, 20]
    let isWriting = true
    const write = async (writer: number) => {
      for (let move = 0; move < moves; move += 1) {
        await metadata.transaction(async ({ tags, events }) => {
          const data = { writer, move }
          await events.add(shelf.accountId, { type: 'manifest.pushed', actor: ann, data })
          // Other transactions commit meanwhile, with PostgreSQL.
          await Bun.sleep((writer * 7 + move * 3) % 5)
          const manifest = manifests[(writer + move) % manifests.length]
          await tags.point(repository, tagged(`t${move % 2}`), manifest?.id ?? 0, tagChange)
        })
      }
    }
    const seen: RegistryEvent[] = []
    const read = async () => {
      for (let isLast = false; ; ) {
        await numberAll(metadata, 5)
        const batch = await metadata.events.listAllAfter(seen.at(-1)?.position ?? 0, 7)
        seen.push(...batch)
        if (batch.length === 0 && isLast) return
        isLast = batch.length === 0 && !isWriting
        await Bun.sleep(1)
      }
    }
    const reading = read()
    await Promise.all(Array.from({ length: writers }, (_, writer) => write(writer)))
    isWriting = false
    await reading

    const pushed = seen.filter(({ type }) => type === 'manifest.pushed').map(({ data }) => JSON.stringify(data))
    expect([pushed.length, new Set(pushed).size]).toEqual([writers * moves, writers * moves])
    for (const tag of ['t0', 't1']) {
      const chain = seen.filter((event) => event.tag === tag)
      expect(chain.length).toBeGreaterThan(writers)
      for (const [at, { previousDigest }] of chain.entries())
        expect(previousDigest).toBe(chain[at - 1]?.digest as never)
    }
  })

  test('is kept for its time, until it was passed on, and if it is the last one', async () => {
    const shelf = await openShelf(await open())
    const { metadata, accountId } = shelf
    for (let at = 0; at < 5; at += 1) {
      await metadata.transaction(({ events }) => events.add(accountId, { type: 'manifest.deleted', actor: ann }))
    }
    await numberAll(metadata)
    await passTime()
    const remove = (keepMs: number, limit = 100) =>
      metadata.transaction(({ events }) => events.removeOld(keepMs, limit))
    const [first, ...rest] = await metadata.events.listAllAfter(0, 100)

    expect(await remove(0)).toBe(0)
    await metadata.transaction(async ({ events }) => {
      expect(await events.lockPassed()).toBe(0)
      await events.setPassed(rest[1]?.position ?? 0)
    })
    expect(await metadata.events.findPassed()).toBe(rest[1]?.position ?? 0)
    expect(await remove(3_600_000)).toBe(0)
    expect(await remove(0, 1)).toBe(1)
    expect(await remove(0)).toBe(1)
    expect(await remove(0)).toBe(0)
    expect(await metadata.events.listAllAfter(first?.position ?? 0, 100)).toEqual(rest.slice(1))
  })
}
