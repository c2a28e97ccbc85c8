// Manifests: each data set from push to deletion, the lists of tags and referrers, and what is refused.
import { expect } from 'bun:test'
import { expectBlob, expectDeletion, expectMissing, expectStored, pushByPut } from './blob-cases.ts'
import { ask, type Case, type Reply, type Repository } from './case.ts'
import { contentOf, DataSet, freshBytes, type Manifest, mediaTypes, type Referrer } from './data-set.ts'
import { dataSets, type NamedSet, sparseSet } from './data-sets.ts'
import { expectAnswer, expectContent, expectRefusal, locationOf, readJson } from './expectations.ts'

/** As the official suite sends it: chunked, without a Content-Length. */
function putManifest(repository: Repository, reference: string, { mediaType, bytes }: Manifest): Promise<Reply> {
  const question = { headers: { 'content-type': mediaType }, body: new Blob([bytes]).stream() }
  return ask(repository, 'PUT', `manifests/${reference}`, question)
}

async function pushManifest(repository: Repository, reference: string, manifest: Manifest, tags: string[] = []) {
  const query = tags.map((tag) => `tag=${tag}`).join('&')
  const reply = await putManifest(repository, `${reference}?${query}`, manifest)
  // With OCI-Subject, clients know that they need not maintain a referrers tag.
  const subject = manifest.subject === undefined ? {} : { 'oci-subject': manifest.subject }
  expectAnswer(reply, 201, { 'docker-content-digest': manifest.digest, ...subject })
  expect((reply.headers.get('oci-tag') ?? '').split(', ').filter((tag) => tag !== '')).toEqual(tags)
  await expectManifest(repository, locationOf(reply, repository), manifest)
}

async function expectManifest(repository: Repository, path: string, manifest: Manifest): Promise<void> {
  const headers = { accept: `${mediaTypes.index}, ${mediaTypes.image}` }
  for (const method of ['HEAD', 'GET']) {
    const reply = await ask(repository, method, path, { headers })
    expectContent(reply, manifest, { 'content-type': manifest.mediaType })
  }
}

/** All tags in the order of their bytes. `last` and all before it are left out. */
async function expectTags(repository: Repository, tags: readonly string[]): Promise<void> {
  const sorted = tags.toSorted()
  for (const [query, expected] of [
    ['', sorted],
    ...sorted.map((last, at) => [`?last=${last}`, sorted.slice(at + 1)]),
  ]) {
    const reply = await ask(repository, 'GET', `tags/list${query}`)
    expectAnswer(reply, 200)
    expect(readJson(reply, 'application/json')).toEqual({ name: repository.name, tags: expected })
  }
}

/** All referrers in any order; with a filter for each of their types, only those of the type. */
async function expectReferrers(repository: Repository, subject: string, expected: readonly Referrer[]): Promise<void> {
  const types = new Set(expected.flatMap(({ artifactType }) => artifactType ?? []))
  for (const type of [undefined, ...types, 'application/vnd.example.nobody.has']) {
    const reply = await ask(
      repository,
      'GET',
      `referrers/${subject}${type === undefined ? '' : `?artifactType=${type}`}`,
    )
    const filters = type === undefined ? null : 'artifactType'
    expectAnswer(reply, 200, { 'oci-filters-applied': filters, 'content-length': String(reply.bytes.length) })
    const manifests = expected.filter(({ artifactType }) => type === undefined || artifactType === type)
    const found = readJson<{ manifests: Referrer[] }>(reply, mediaTypes.index)
    const sorted = found.manifests.toSorted((one, other) => (one.digest < other.digest ? -1 : 1))
    expect({ ...found, manifests: sorted }).toEqual({
      schemaVersion: 2,
      mediaType: mediaTypes.index,
      manifests: manifests.toSorted((one, other) => (one.digest < other.digest ? -1 : 1)),
    } as never)
  }
}

async function pushBlobs(repository: Repository, { blobs }: DataSet): Promise<void> {
  for (const blob of blobs.values()) await expectStored(repository, await pushByPut(repository, blob), blob)
}

function taggedManifests({ manifests, tags }: DataSet): readonly (readonly [string, Manifest])[] {
  return [...tags].flatMap(([tag, digest]) =>
    manifests.filter((manifest) => manifest.digest === digest).map((manifest) => [tag, manifest] as const),
  )
}

/** Blobs, then manifests by digest with the children first, then by tag. */
async function pushSet(repository: Repository, set: DataSet, hasTagParameters = false): Promise<void> {
  await pushBlobs(repository, set)
  for (const manifest of set.manifests) {
    const tags = taggedManifests(set).filter(([, { digest }]) => digest === manifest.digest)
    await pushManifest(repository, manifest.digest, manifest, hasTagParameters ? tags.map(([tag]) => tag) : [])
  }
  if (hasTagParameters) return
  for (const [tag, manifest] of taggedManifests(set)) await pushManifest(repository, tag, manifest)
}

/** Tags, then manifests with the children last, then blobs; each is gone at once, and nothing else is. */
async function deleteSet(repository: Repository, set: DataSet): Promise<void> {
  for (const [tag, manifest] of taggedManifests(set)) {
    await expectDeletion(repository, `manifests/${tag}`)
    await expectManifest(repository, `manifests/${manifest.digest}`, manifest)
  }
  for (const { digest } of set.manifests.toReversed()) await expectDeletion(repository, `manifests/${digest}`)
  for (const blob of set.blobs.values()) {
    await expectBlob(repository, blob)
    await expectDeletion(repository, `blobs/${blob.digest}`)
  }
}

function setCase([official, what, fill, options]: NamedSet): Case {
  return {
    title: `stores, lists, returns and deletes ${what}`,
    official,
    async check(repository) {
      const set = new DataSet(options)
      fill(set, official)
      await pushSet(repository, set, options?.hasTagParameters)
      await expectTags(repository, [...set.tags.keys()])
      for (const [tag, manifest] of taggedManifests(set)) await expectManifest(repository, `manifests/${tag}`, manifest)
      for (const manifest of set.manifests) await expectManifest(repository, `manifests/${manifest.digest}`, manifest)
      for (const blob of set.blobs.values()) await expectBlob(repository, blob)
      for (const [subject, referrers] of set.referrers) await expectReferrers(repository, subject, referrers)
      await deleteSet(repository, set)
    },
  }
}

/** An image whose blobs are pushed, so that nothing but the manifest can be wrong. */
async function prepareImage(repository: Repository): Promise<Manifest> {
  const set = new DataSet()
  set.addImage()
  await pushBlobs(repository, set)
  return set.manifests[0] ?? expect.unreachable()
}

const malformed = 'sha256:baddigeststring'
const unknown = () => contentOf(freshBytes(1024)).digest

/** [official, title, check] */
const singleCases: readonly (readonly [string, string, Case['check']])[] = [
  ['ping', 'accepts known callers', async (its) => expectAnswer(await ask(its, 'GET', `${its.mount}/v2/`), 200)],
  [
    'ping',
    'asks anonymous callers for credentials with exactly one challenge',
    async (repository) => {
      const reply = await ask({ ...repository, authorization: undefined }, 'GET', `${repository.mount}/v2/`)
      expectRefusal(reply, 401)
      // A second challenge would follow a comma, because fetch joins repeated headers.
      expect(reply.headers.get('www-authenticate')).toMatch(/^Basic realm="[^"]*"(, charset="UTF-8")?$/)
    },
  ],
  [
    'empty/tag list',
    'has no tags where nothing was pushed',
    async (repository) => expectRefusal(await ask(repository, 'GET', 'tags/list'), 404),
  ],
  [
    'empty/referrers',
    'has an empty list of referrers where nothing was pushed',
    (repository) => expectReferrers(repository, unknown(), []),
  ],
  [
    'missing-manifest/by-digest',
    'has no manifest by a digest that was never pushed',
    (repository) => expectMissing(repository, `manifests/${unknown()}`),
  ],
  [
    'missing-manifest/by-tag',
    'has no manifest by a tag that was never pushed',
    (repository) => expectMissing(repository, 'manifests/missing-tag'),
  ],
  [
    'invalid-digest-format/manifest-put',
    'refuses a manifest under a malformed digest',
    async (repository) => {
      const manifest = await prepareImage(repository)
      expectRefusal(await putManifest(repository, malformed, manifest), 400)
      await expectMissing(repository, `manifests/${manifest.digest}`)
    },
  ],
  [
    'invalid-digest-format/manifest-get',
    'has no manifest by a malformed digest',
    async (repository) => expectRefusal(await ask(repository, 'GET', `manifests/${malformed}`), 404, 400),
  ],
  [
    'bad-digest-image/push',
    'refuses a manifest under the digest of other bytes',
    async (repository) => {
      const manifest = await prepareImage(repository)
      // JSON may have spaces behind it: the manifest is the same, its digest is not.
      const bytes = new Uint8Array([...manifest.bytes, 0x20])
      expectRefusal(await putManifest(repository, manifest.digest, { ...manifest, bytes }), 400)
      for (const digest of [manifest.digest, contentOf(bytes).digest]) {
        await expectMissing(repository, `manifests/${digest}`)
        expectRefusal(await ask(repository, 'DELETE', `manifests/${digest}`), 404)
      }
    },
  ],
]

/** The official suite deletes, but does not look at the list afterwards. */
function deletedCase(what: 'referrer' | 'subject'): Case {
  return {
    title: what === 'referrer' ? 'drops a deleted referrer from the list' : 'lists referrers of a deleted subject',
    official: 'artifacts-with-subject',
    async check(repository) {
      const set = new DataSet()
      const subject = set.addImage()
      const referrer = set.addArtifact(mediaTypes.exampleOne, set.addBlob(mediaTypes.exampleOne), { subject })
      await pushSet(repository, set)
      await expectDeletion(repository, `manifests/${what === 'referrer' ? referrer.digest : subject.digest}`)
      const left = what === 'referrer' ? [] : set.referrers.get(subject.digest)
      await expectReferrers(repository, subject.digest, left ?? [])
    },
  }
}

export const manifestCases: readonly Case[] = [
  ...singleCases.map(([official, title, check]): Case => ({ official, title, check })),
  ...dataSets.map(setCase),
  deletedCase('referrer'),
  deletedCase('subject'),
]

/** By default, a manifest that names missing content is refused; the official suite has this set switched off too. */
export const sparseCases: readonly Case[] = [setCase(sparseSet)]
