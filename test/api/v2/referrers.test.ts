// getImageDigestReferrers: spec.md 2, 4 (rule 3) and 7; distribution-spec end-12a, end-12b. What an entry
// contains is held by ../../conformance.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type Descriptor, indexOf, ociIndex, pushApiImage, putManifest } from '../../support/api/api-images.ts'
import { mounts, ownHeaders, type Reply, startApi, verdictOf } from '../../support/api/api-server.ts'

const server = await startApi({ BERTH_LIMITS__ANNOTATION_BYTES: '4MiB' })
afterAll(() => server.stop())

interface ReferrerIndex {
  readonly schemaVersion: number
  readonly mediaType: string
  readonly manifests: readonly (Descriptor & { artifactType?: string; annotations?: Record<string, string> })[]
}

const name = 'referrers/deep/app'
const subject = await pushApiImage(server, name, 'v1', { layers: ['subject'] })
const signature = await pushApiImage(server, name, 'signature', {
  subject: subject.descriptor,
  artifactType: 'application/vnd.example.signature+json',
  annotations: { by: 'somebody' },
})
const sbom = await pushApiImage(server, name, 'sbom', {
  subject: subject.descriptor,
  configMediaType: 'application/sbom',
})
const list = indexOf([], { subject: subject.descriptor })
await putManifest(server, name, 'list', list)
const absent = `sha256:${'0'.repeat(64)}`

const entriesOf = (reply: Reply) => reply.json<ReferrerIndex>().manifests
const digestsOf = (reply: Reply) => entriesOf(reply).map((entry) => entry.digest)
const byDigest = (digests: readonly string[]) => [...digests].sort()

describe.each(mounts)('getImageDigestReferrers at %s', (mount) => {
  const referrers = `${mount}/${name}/referrers`

  test('lists all in one order, with the content type of an image index, and nothing about filters', async () => {
    const reply = await server.ask('GET', `${referrers}/${subject.digest}`)

    expect(digestsOf(reply)).toEqual(byDigest([signature.digest, sbom.digest, list.digest]))
    expect(reply.headers.get('content-type')).toBe('application/vnd.oci.image.index.v1+json')
    expect(ownHeaders(reply)).toEqual(['content-length', 'content-type'])
  })

  test.each([
    ['as it is written', 'application/vnd.example.signature%2Bjson'],
    ['with a raw plus', 'application/vnd.example.signature+json'],
  ])('filters by an artifact type %s, and says so', async (_, type) => {
    const reply = await server.ask('GET', `${referrers}/${subject.digest}?artifactType=${type}`)

    expect(digestsOf(reply)).toEqual([signature.digest])
    expect(reply.headers.get('oci-filters-applied')).toBe('artifactType')
  })

  test('filters by any of several artifact types', async () => {
    const query = 'artifactType=application/sbom&artifactType=application/vnd.example.signature%2Bjson'
    const reply = await server.ask('GET', `${referrers}/${subject.digest}?${query}`)

    expect(digestsOf(reply)).toEqual(byDigest([signature.digest, sbom.digest]))
    expect(reply.headers.get('oci-filters-applied')).toBe('artifactType')
  })

  test('does not filter by an empty artifact type', async () => {
    const reply = await server.ask('GET', `${referrers}/${subject.digest}?artifactType=`)

    expect([entriesOf(reply).length, reply.headers.get('oci-filters-applied')]).toEqual([3, null])
  })

  test.each([
    ['of a digest that is not here', `${name}/referrers/${absent}`],
    ['of an algorithm that we do not compute', `${name}/referrers/blake3:abcdef`],
  ])('answers 200 with an empty list for a subject %s', async (_, path) => {
    const reply = await server.ask('GET', `${mount}/${path}`)

    expect([reply.status, reply.json()]).toEqual([200, { schemaVersion: 2, mediaType: ociIndex, manifests: [] }])
  })

  test.each(['v1', 'sha256:short', `sha256:${'Z'.repeat(64)}`])('answers 400 DIGEST_INVALID for %s', async (digest) => {
    expect(verdictOf(await server.ask('GET', `${referrers}/${digest}`))).toBe('400 DIGEST_INVALID')
  })

  test('ignores what stands behind a NUL in `last`, which no digest has', async () => {
    const [first] = byDigest([signature.digest, sbom.digest, list.digest])
    const reply = await server.ask('GET', `${referrers}/${subject.digest}?last=${first}%00x`)

    expect([reply.status, entriesOf(reply).length]).toEqual([200, 2])
  })
})

describe('the list of referrers', () => {
  test('holds nothing of another repository', async () => {
    await pushApiImage(server, 'referrers/other', 'v1', { layers: ['subject'] })

    expect(digestsOf(await server.ask('GET', `/v2/referrers/other/referrers/${subject.digest}`))).toEqual([])
  })
})

// Clients read at most 4 MiB of an index.
describe('more referrers than 4 MiB can describe', () => {
  const large = 'referrers/large'
  const maxBytes = 4 * 1024 * 1024
  // Two bytes a letter: it is bytes that count.
  const filler = 'é'.repeat(450_000)
  const pushed: string[] = []

  beforeAll(async () => {
    for (let number = 0; number < 6; number += 1) {
      const annotations = { filler, number: `${number}` }
      const parts = { subject: subject.descriptor, artifactType: 'application/large', annotations }
      pushed.push((await pushApiImage(server, large, `r${number}`, parts)).digest)
    }
  })

  test.each(mounts)('come in pages below 4 MiB, which Links of the same mount join, at %s', async (mount) => {
    const found: string[] = []
    const sizes: number[] = []
    let next: string | undefined = `${mount}/${large}/referrers/${subject.digest}`
    while (next !== undefined) {
      expect(next).toStartWith(`${mount}/${large}/referrers/${subject.digest}`)
      const reply = await server.ask('GET', next)
      found.push(...digestsOf(reply))
      sizes.push(reply.bytes.length)
      next = /^<(.+)>; rel="next"$/.exec(reply.headers.get('link') ?? '')?.[1]
    }

    expect(found).toEqual(byDigest(pushed))
    expect(sizes.length).toBe(2)
    expect(Math.max(...sizes)).toBeLessThanOrEqual(maxBytes)
  })

  test('keep their filter from page to page', async () => {
    const first = await server.ask('GET', `/v2/${large}/referrers/${subject.digest}?artifactType=application/large`)
    const next = /^<(.+)>;/.exec(first.headers.get('link') ?? '')?.[1] ?? ''
    const second = await server.ask('GET', next)

    expect(second.headers.get('oci-filters-applied')).toBe('artifactType')
    expect([...digestsOf(first), ...digestsOf(second)]).toEqual(byDigest(pushed))
  })
})
