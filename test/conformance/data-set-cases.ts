// What the official suite does with each data set, one case a step; each starts with the set in a fresh repository.
import { deleteBlob, expectBlobGet, expectBlobHead, expectStored } from './blob-checks.ts'
import { pushByPut } from './blob-pushes.ts'
import type { Case } from './case.ts'
import type { Repository } from './client.ts'
import type { DataSet, Manifest } from './data-set.ts'
import type { NamedDataSet } from './image-sets.ts'
import { expectReferrers, expectTags, expectTagsAfterEach } from './list-checks.ts'
import {
  deleteManifest,
  expectManifestGet,
  expectManifestHead,
  expectNoManifest,
  pushManifest,
} from './manifest-checks.ts'

function tagsOf(set: DataSet, digest: string): string[] {
  return [...set.tags].filter(([, target]) => target === digest).map(([tag]) => tag)
}

/** Blobs, then manifests by digest with the children first, then by tag. */
export async function pushSet(repository: Repository, set: DataSet, hasTagParameters = false): Promise<void> {
  await pushBlobs(repository, set)
  for (const manifest of set.manifests) {
    await pushManifest(repository, manifest.digest, manifest, hasTagParameters ? tagsOf(set, manifest.digest) : [])
  }
  if (hasTagParameters) return
  for (const { manifest, tag } of taggedManifests(set)) await pushManifest(repository, tag, manifest)
}

async function pushBlobs(repository: Repository, { blobs }: DataSet): Promise<void> {
  for (const blob of blobs) await expectStored(repository, await pushByPut(repository, blob), blob)
}

function taggedManifests(set: DataSet): { manifest: Manifest; tag: string }[] {
  return set.manifests.flatMap((manifest) => tagsOf(set, manifest.digest).map((tag) => ({ manifest, tag })))
}

async function checkHead(repository: Repository, set: DataSet): Promise<void> {
  for (const { manifest, tag } of taggedManifests(set)) await expectManifestHead(repository, tag, manifest)
  for (const manifest of set.manifests) await expectManifestHead(repository, manifest.digest, manifest)
  for (const blob of set.blobs) await expectBlobHead(repository, blob)
}

async function checkPull(repository: Repository, set: DataSet): Promise<void> {
  for (const { manifest, tag } of taggedManifests(set)) await expectManifestGet(repository, tag, manifest)
  for (const manifest of set.manifests) await expectManifestGet(repository, manifest.digest, manifest)
  for (const blob of set.blobs) await expectBlobGet(repository, blob)
}

async function checkTagList(repository: Repository, set: DataSet): Promise<void> {
  const tags = [...set.tags.keys()]
  await expectTags(repository, tags)
  await expectTagsAfterEach(repository, tags)
}

async function checkReferrers(repository: Repository, set: DataSet): Promise<void> {
  for (const [subject, expected] of set.referrers) await expectReferrers(repository, subject, expected)
}

/** The push has checked itself. */
async function checkNothingMore(): Promise<void> {}

/** Tags, then manifests with the children last, then blobs; each is gone at once, and nothing else is. */
async function checkDelete(repository: Repository, set: DataSet): Promise<void> {
  for (const { manifest, tag } of taggedManifests(set)) {
    await deleteManifest(repository, tag)
    await expectManifestHead(repository, manifest.digest, manifest)
  }
  for (const { digest } of set.manifests.toReversed()) await deleteManifest(repository, digest)
  for (const blob of set.blobs) {
    await expectBlobHead(repository, blob)
    await deleteBlob(repository, blob.digest)
  }
  for (const tag of set.tags.keys()) await expectNoManifest(repository, tag)
}

type Step = (repository: Repository, set: DataSet) => Promise<void>

const steps: readonly (readonly [string, (what: string) => string, Step])[] = [
  ['push', (what) => `takes in ${what}`, checkNothingMore],
  ['tag-list', (what) => `lists the tags of ${what}`, checkTagList],
  ['head', (what) => `answers HEAD for all of ${what}`, checkHead],
  ['pull', (what) => `gives back every byte of ${what}`, checkPull],
  ['referrers', (what) => `lists the referrers in ${what}`, checkReferrers],
  ['delete', (what) => `deletes all of ${what} at once`, checkDelete],
]

export function casesOf(named: NamedDataSet): Case[] {
  return steps
    .filter(([step]) => step !== 'referrers' || named.set.referrers.size > 0)
    .map(([step, title, check]) => ({
      title: title(named.what),
      official: `${named.official}/${step}`,
      async check(repository) {
        await pushSet(repository, named.set, named.hasTagParameters)
        await check(repository, named.set)
      },
    }))
}
