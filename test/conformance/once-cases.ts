// The cases that the official suite runs once: the check, an unknown repository, and what is refused.
import { deleteBlob, expectStored } from './blob-checks.ts'
import { pushByPut } from './blob-pushes.ts'
import type { Case } from './case.ts'
import { type Repository, send } from './client.ts'
import { digestOf, noise, textBytes } from './content.ts'
import { type DataSet, DataSetBuilder, type Manifest } from './data-set.ts'
import { expectRefusal, expectStatus, fail } from './expectations.ts'
import { expectReferrersList, listReferrers, listTags } from './list-checks.ts'
import { expectNoManifest, expectNoManifestToDelete, getManifest, putManifest } from './manifest-checks.ts'

const malformedDigest = 'sha256:baddigeststring'

async function ping(repository: Repository): Promise<void> {
  expectStatus(await send(repository, 'GET', new URL(`${repository.origin}${repository.mount}/v2/`)), 200)
}

/** The official suite learns from this how to log in, and under a prefix cannot do it. */
async function pingAnonymously(repository: Repository): Promise<void> {
  const anonymous = { ...repository, authorization: undefined }
  const reply = await send(anonymous, 'GET', new URL(`${repository.origin}${repository.mount}/v2/`))
  expectRefusal(reply, 401)
  const challenge = reply.headers.get('www-authenticate') ?? ''
  // A second challenge would stand behind a comma, since fetch joins repeated headers.
  if (!/^Basic realm="[^"]*"(, charset="UTF-8")?$/.test(challenge))
    fail(reply, `'${challenge}' must be one Basic challenge`)
}

async function listTagsOfNothing(repository: Repository): Promise<void> {
  expectRefusal(await listTags(repository), 404)
}

async function listReferrersOfNothing(repository: Repository): Promise<void> {
  expectReferrersList(await listReferrers(repository, digestOf(noise(repository.name, 1024))), [])
}

async function getMissingByDigest(repository: Repository): Promise<void> {
  await expectNoManifest(repository, digestOf(noise(repository.name, 1024)))
}

async function getMissingByTag(repository: Repository): Promise<void> {
  await expectNoManifest(repository, 'missing-tag')
}

/** An image with its blobs already there, so that nothing but the manifest can be wrong. */
async function prepareImage(repository: Repository): Promise<{ set: DataSet; manifest: Manifest }> {
  const builder = new DataSetBuilder(repository.name)
  builder.addImage()
  const set = builder.build()
  for (const blob of set.blobs) await expectStored(repository, await pushByPut(repository, blob), blob)
  const [manifest] = set.manifests
  if (manifest === undefined) throw new Error('the set has no manifest')
  return { set, manifest }
}

async function deleteBlobs(repository: Repository, { blobs }: DataSet): Promise<void> {
  for (const { digest } of blobs) await deleteBlob(repository, digest)
}

async function putUnderMalformedDigest(repository: Repository): Promise<void> {
  const { set, manifest } = await prepareImage(repository)
  expectRefusal(await putManifest(repository, malformedDigest, manifest), 400)
  await expectNoManifest(repository, manifest.digest)
  await deleteBlobs(repository, set)
}

async function getMalformedDigest(repository: Repository): Promise<void> {
  expectRefusal(await getManifest(repository, malformedDigest), 404, 400)
}

/** JSON may have spaces behind it: the manifest is the same, its digest is not. */
async function putUnderWrongDigest(repository: Repository): Promise<void> {
  const { set, manifest } = await prepareImage(repository)
  const bytes = new Uint8Array([...manifest.bytes, ...textBytes('  ')])
  expectRefusal(await putManifest(repository, manifest.digest, { ...manifest, bytes }), 400)
  for (const digest of [manifest.digest, digestOf(bytes)]) {
    await expectNoManifest(repository, digest)
    await expectNoManifestToDelete(repository, digest)
  }
  await deleteBlobs(repository, set)
}

export const onceCases: readonly Case[] = [
  { title: 'says yes to those whom it knows', official: 'ping', check: ping },
  {
    title: 'asks anonymous callers for credentials with exactly one challenge',
    official: 'ping',
    check: pingAnonymously,
  },
  { title: 'has no tags where nothing was pushed', official: 'empty/tag list', check: listTagsOfNothing },
  {
    title: 'has an empty list of referrers where nothing was pushed',
    official: 'empty/referrers',
    check: listReferrersOfNothing,
  },
  {
    title: 'has no manifest by a digest that was never pushed',
    official: 'missing-manifest/by-digest',
    check: getMissingByDigest,
  },
  {
    title: 'has no manifest by a tag that was never pushed',
    official: 'missing-manifest/by-tag',
    check: getMissingByTag,
  },
  {
    title: 'refuses a manifest under a digest that is none',
    official: 'invalid-digest-format/manifest-put',
    check: putUnderMalformedDigest,
  },
  {
    title: 'has no manifest by a digest that is none',
    official: 'invalid-digest-format/manifest-get',
    check: getMalformedDigest,
  },
  {
    title: 'refuses a manifest under the digest of other bytes',
    official: 'bad-digest-image/push',
    check: putUnderWrongDigest,
  },
]
