// The contract of manifests: their bytes, and the references between them.
import { expect, test } from 'bun:test'
import { digestOf } from '../support/basics/generated-bytes.ts'
import { outcomeOf } from '../support/basics/outcomes.ts'
import { addManifest, manifestOf, openShelf, tagged } from '../support/stores/metadata-rows.ts'
import type { OpenMetadataStore } from './metadata-store.ts'

export function manifestsContract(open: OpenMetadataStore): void {
  keeping(open)
  referring(open)
}

function keeping(open: OpenMetadataStore): void {
  test('give back exactly the bytes and the type that were stored, by digest and by tag', async () => {
    const shelf = await openShelf(await open())
    const bytes = new Uint8Array([0, 255, 10, 13, 0, 123])
    const more = { bytes, digest: digestOf(bytes), sizeBytes: 6, mediaType: 'application/vnd.oci.image.index.v1+json' }
    const { digest } = await addManifest(shelf, '', { tag: 'latest', more })
    const { metadata, scope } = shelf
    const summary = { digest, mediaType: more.mediaType, sizeBytes: 6 }

    for (const reference of [{ digest }, { tag: tagged('latest') }]) {
      const found = await metadata.manifests.find(scope, reference)
      expect(found).toMatchObject(summary)
      expect(new Uint8Array(found?.bytes ?? [])).toEqual(bytes)
      expect(await metadata.manifests.describe(scope, reference)).toMatchObject(summary)
    }
  })

  test('of 4 MiB come back whole, and under a sha512 digest are found by it', async () => {
    const shelf = await openShelf(await open())
    const { digest } = await addManifest(shelf, 'x'.repeat(4 * 1024 * 1024))
    const longer = digestOf('one', 'sha512')
    await addManifest(shelf, 'one', { more: { digest: longer } })

    const found = await shelf.metadata.manifests.find(shelf.scope, { digest })

    expect(found && digestOf(found.bytes)).toBe(digest)
    expect((await shelf.metadata.manifests.describe(shelf.scope, { digest: longer }))?.digest).toBe(longer)
  })

  test('that are not there, by tag, digest or repository, are not found', async () => {
    const shelf = await openShelf(await open())
    const { digest } = await addManifest(shelf, 'one', { tag: 'latest' })
    const { metadata, scope } = shelf
    const elsewhere = { ...scope, repository: 'elsewhere' as typeof scope.repository }

    expect(await metadata.manifests.find(scope, { digest: digestOf('another') })).toBeUndefined()
    expect(await metadata.manifests.find(scope, { tag: tagged('another') })).toBeUndefined()
    expect(await metadata.manifests.find(scope, { tag: tagged('LATEST') })).toBeUndefined()
    expect(await metadata.manifests.find(elsewhere, { digest })).toBeUndefined()
    expect(await metadata.manifests.describe(elsewhere, { tag: tagged('latest') })).toBeUndefined()
  })

  test('pushed again stay the same, and may have another media type; after a removal they are new', async () => {
    const shelf = await openShelf(await open())
    const { metadata, scope, repository } = shelf
    const first = await addManifest(shelf, 'one', { waiting: ['a layer'] })
    const { id, digest } = first

    expect(await addManifest(shelf, 'one', { more: { mediaType: 'application/another' } })).toEqual({
      ...first,
      isNew: false,
    })
    expect((await metadata.manifests.describe(scope, { digest }))?.mediaType).toBe('application/another')
    await metadata.transaction((tables) => tables.manifests.remove(repository, id))
    expect(await metadata.manifests.find(scope, { digest })).toBeUndefined()
    expect((await addManifest(shelf, 'one')).isNew).toBe(true)
  })

  test('are locked by their digests, those of other repositories left out', async () => {
    const shelf = await openShelf(await open())
    const other = await openShelf(shelf.metadata, 'acme', 'other')
    const [one, two] = [await addManifest(shelf, 'one'), await addManifest(shelf, 'two')]
    const foreign = await addManifest(other, 'three')
    const digests = [one.digest, two.digest, foreign.digest, digestOf('nobody')]

    const locked = await shelf.metadata.transaction(async ({ manifests }) => ({
      many: await manifests.lockByDigests(shelf.repository, digests),
      none: await manifests.lockByDigests(shelf.repository, []),
      found: await manifests.findLocked(shelf.repository, two.digest),
      foreign: await manifests.findLocked(shelf.repository, foreign.digest),
    }))

    expect(locked.many).toEqual(
      new Map([
        [one.digest, one.id],
        [two.digest, two.id],
      ]),
    )
    expect(locked.none.size).toBe(0)
    expect(locked.found).toBe(two.id)
    expect(locked.foreign).toBeUndefined()
  })

  test('are looked up by each part of their key, not by the parts in one text', async () => {
    const metadata = await open()
    const shelves = []
    for (let number = 1; number <= 11; number += 1) shelves.push(await openShelf(metadata, `account ${number}`, '1a'))
    const [first, eleventh] = [shelves[0], shelves[10]]
    if (first === undefined || eleventh === undefined) throw new Error('no accounts')
    expect([first.accountId, eleventh.accountId]).toEqual([1, 11])
    const places = [
      [first, 'bc'],
      [await openShelf(metadata, 'account 1', '1ab'), 'c'],
      [await openShelf(metadata, 'account 11', 'a'), 'bc'],
    ] as const
    for (const [at, [shelf, tag]] of places.entries()) await addManifest(shelf, `manifest ${at}`, { tag })

    const found = []
    for (const [{ scope }, tag] of places) {
      found.push((await metadata.manifests.find(scope, { tag: tagged(tag) }))?.digest)
    }

    expect(found).toEqual(places.map((_, at) => digestOf(`manifest ${at}`)))
  })

  test('cannot be removed while a tag points to them, or an index lists them', async () => {
    const shelf = await openShelf(await open())
    const [one, child] = [await addManifest(shelf, 'one', { tag: 'latest' }), await addManifest(shelf, 'child')]
    await addManifest(shelf, 'index', { children: [child] })

    for (const { id, digest } of [one, child]) {
      const removal = shelf.metadata.transaction((tables) => tables.manifests.remove(shelf.repository, id))
      expect(await outcomeOf(removal)).toBe('refused')
      expect(await shelf.metadata.manifests.describe(shelf.scope, { digest })).toBeDefined()
    }
  })
}

function referring(open: OpenMetadataStore): void {
  const subject = digestOf('the subject')
  const all = { subject, artifactTypes: [], after: undefined, limit: 100, bytesMax: 100_000 }

  async function openReferrers() {
    const shelf = await openShelf(await open())
    const annotations = { 'org.example.note': 'ein "Wort" – 字', empty: '' }
    await addManifest(shelf, 'signature', { more: { subject, artifactType: 'application/sig', annotations } })
    // Longer than what is read together with other texts.
    const long = { long: 'é'.repeat(2000) }
    await addManifest(shelf, 'list', { more: { subject, artifactType: 'application/sbom', annotations: long } })
    await addManifest(shelf, 'bare', { more: { subject } })
    await addManifest(shelf, 'of another', { more: { subject: digestOf('another subject') } })
    await addManifest(shelf, 'of nobody')
    return { shelf, annotations }
  }

  test('that name a subject are listed in digest order, by artifact types, whether the subject exists or not', async () => {
    const { shelf, annotations } = await openReferrers()
    const list = async (...artifactTypes: string[]) =>
      (await shelf.metadata.manifests.listReferrers(shelf.scope, { ...all, artifactTypes })).referrers
    const { mediaType } = manifestOf('')
    const found = (text: string, artifactType?: string, texts?: object) => ({
      digest: digestOf(text),
      mediaType,
      sizeBytes: text.length,
      artifactType,
      annotationsJson: texts && JSON.stringify(texts),
    })
    const signature = found('signature', 'application/sig', annotations)
    const sbom = found('list', 'application/sbom', { long: 'é'.repeat(2000) })
    const sorted = (...referrers: (typeof signature)[]) =>
      referrers.toSorted((one, other) => (one.digest < other.digest ? -1 : 1))

    expect(await list()).toEqual(sorted(signature, sbom, found('bare')))
    expect(await list('application/sig')).toEqual([signature])
    expect(await list('application/sig', 'application/sbom')).toEqual(sorted(signature, sbom))
    expect(await list('application/another')).toEqual([])
  })

  test('that name a subject are listed in batches of so many rows and bytes, and of one row at least', async () => {
    const { shelf } = await openReferrers()
    const { manifests } = shelf.metadata
    const whole = await manifests.listReferrers(shelf.scope, all)
    expect(whole).toMatchObject({ referrers: { length: 3 }, hasMore: false })

    for (const [limits, lengths] of [
      [{ limit: 2 }, [2, 1]],
      // One has about 4,300 bytes, the others 250 to 310.
      [{ bytesMax: 4_700 }, [2, 1]],
      [{ bytesMax: 1 }, [1, 1, 1]],
    ] as const) {
      const batches = []
      let after: string | undefined
      do {
        batches.push(await manifests.listReferrers(shelf.scope, { ...all, ...limits, after }))
        after = batches.at(-1)?.referrers.at(-1)?.digest
      } while (batches.at(-1)?.hasMore)
      expect(batches.map(({ referrers }) => referrers.length)).toEqual([...lengths])
      expect(batches.flatMap(({ referrers }) => referrers)).toEqual([...whole.referrers])
    }
  })

  test('that name a subject are not listed in another repository, nor once they are removed', async () => {
    const { shelf } = await openReferrers()
    const { metadata, repository, scope } = shelf
    const other = await openShelf(metadata, 'acme', 'other')

    await metadata.transaction(async ({ manifests }) => {
      const id = await manifests.findLocked(repository, digestOf('bare'))
      if (id !== undefined) await manifests.remove(repository, id)
    })

    expect(await metadata.manifests.listReferrers(other.scope, all)).toEqual({ referrers: [], hasMore: false })
    expect((await metadata.manifests.listReferrers(scope, all)).referrers).toHaveLength(2)
  })

  test('may name a subject of an unsupported algorithm', async () => {
    const shelf = await openShelf(await open())
    const strange = 'blake3:abc' as typeof subject
    await addManifest(shelf, 'one', { more: { subject: strange } })

    const listed = await shelf.metadata.manifests.listReferrers(shelf.scope, { ...all, subject: strange })
    expect(listed.referrers).toHaveLength(1)
  })
}
