// "sha256 blobs" and "sha512 blobs": every push that is one blob at once or one stream, mounts, cancelling, bad digests.
import { deleteBlob, expectBlob, expectNoBlob, expectNothingToDelete, expectStored } from './blob-checks.ts'
import {
  type BlobPush,
  blobOfThreeChunks,
  cancelUpload,
  mountBlob,
  pushAsStream,
  pushByPost,
  pushByPut,
  pushInChunks,
  sourceOf,
  startUpload,
} from './blob-pushes.ts'
import type { Case } from './case.ts'
import { type Repository, send, withQuery } from './client.ts'
import { type Algorithm, algorithms, blobOf, type Content, mediaTypes, noiseBlob, textBytes } from './content.ts'
import { expectRefusal, expectStatus, locationOf } from './expectations.ts'

const blobBytes = 512

/** Push, HEAD, GET, DELETE, and HEAD again. */
export async function checkLife(repository: Repository, blob: Content, push: BlobPush): Promise<void> {
  await expectStored(repository, await push(repository, blob), blob)
  await expectBlob(repository, blob)
  await deleteBlob(repository, blob.digest)
}

function pushCase(title: string, official: string, algorithm: Algorithm, push: BlobPush): Case {
  return {
    title: `${title}, by ${algorithm}`,
    official: `${algorithm} blobs/${official}`,
    check: (repository) => checkLife(repository, noiseBlob(repository.name, blobBytes, algorithm), push),
  }
}

function pushCases(algorithm: Algorithm): Case[] {
  const singleChunk = pushInChunks({ isLastInPut: false, isOutOfOrder: false })
  return [
    pushCase('takes a blob in one POST', 'post only', algorithm, pushByPost),
    pushCase('takes a blob in the PUT after a POST', 'post+put', algorithm, pushByPut),
    pushCase('takes a blob in one chunk', 'chunked single', algorithm, singleChunk),
    pushCase('takes a blob as a stream of unknown length', 'stream', algorithm, pushAsStream),
  ]
}

function missingCase(algorithm: Algorithm): Case {
  return {
    title: `has no blob with a ${algorithm} digest that was never pushed`,
    official: `${algorithm} blobs/get-missing`,
    check: (repository) => expectNoBlob(repository, noiseBlob(repository.name, blobBytes, algorithm).digest),
  }
}

function mountCase(title: string, official: string, algorithm: Algorithm, isSourceNamed: boolean): Case {
  return {
    title: `${title}, by ${algorithm}`,
    official: `${algorithm} blobs/${official}`,
    async check(repository) {
      const source = sourceOf(repository)
      const blob = noiseBlob(repository.name, blobBytes, algorithm)
      await expectStored(source, await pushByPut(source, blob), blob)
      await expectNoBlob(repository, blob.digest)
      const mounted = await mountBlob(repository, blob.digest, isSourceNamed ? source : undefined)
      await expectStored(repository, mounted, blob)
      await expectBlob(repository, blob)
      await deleteBlob(repository, blob.digest)
      // The other repository keeps its own claim on the blob until it gives it up itself.
      await expectBlob(source, blob)
      await deleteBlob(source, blob.digest)
    },
  }
}

function missingMountCase(algorithm: Algorithm): Case {
  return {
    title: `opens an upload instead of a mount of a missing blob, by ${algorithm}`,
    official: `${algorithm} blobs/mount missing`,
    async check(repository) {
      const blob = noiseBlob(repository.name, blobBytes, algorithm)
      const opened = await mountBlob(repository, blob.digest, sourceOf(repository))
      expectStatus(opened, 202)
      const location = withQuery(locationOf(opened, repository), { digest: blob.digest })
      const put = { headers: { 'content-type': mediaTypes.octets }, body: blob.bytes }
      await expectStored(repository, await send(repository, 'PUT', location, put), blob)
      await expectBlob(repository, blob)
      await deleteBlob(repository, blob.digest)
    },
  }
}

function cancelCase(algorithm: Algorithm): Case {
  return {
    title: `forgets an upload that is cancelled, and has no blob, by ${algorithm}`,
    official: `${algorithm} blobs/post cancel`,
    async check(repository) {
      const { digest } = noiseBlob(repository.name, blobBytes, algorithm)
      const { location } = await startUpload(repository)
      await cancelUpload(repository, location)
      await expectNoBlob(repository, digest)
      await expectNothingToDelete(repository, digest)
    },
  }
}

const oddContents = [
  { what: 'the blob of no bytes', official: 'empty', bytes: new Uint8Array() },
  { what: 'the empty JSON object', official: 'emptyJSON', bytes: textBytes('{}') },
]

/** The official suite takes whichever push works; here it is each of them. */
function oddContentCases(algorithm: Algorithm): Case[] {
  const pushes: readonly (readonly [string, BlobPush])[] = [
    ['in one POST', pushByPost],
    ['in a PUT', pushByPut],
    ['as a stream', pushAsStream],
    ['in chunks', pushInChunks({ isLastInPut: false, isOutOfOrder: false })],
  ]
  return oddContents.flatMap(({ what, official, bytes }) =>
    pushes.map(([how, push]) => ({
      title: `takes ${what} ${how}, by ${algorithm}`,
      official: `${algorithm} blobs/${official}`,
      check: (repository: Repository) => checkLife(repository, blobOf(bytes, algorithm), push),
    })),
  )
}

function badDigestCases(algorithm: Algorithm): Case[] {
  const pushes: readonly (readonly [string, BlobPush])[] = [
    ['post only', pushByPost],
    ['post+put', pushByPut],
    ['chunked', pushInChunks({ isLastInPut: false, isOutOfOrder: false })],
    ['chunked and put chunk', pushInChunks({ isLastInPut: true, isOutOfOrder: false })],
    ['stream', pushAsStream],
  ]
  return pushes.map(([how, push]) => ({
    title: `refuses bytes that do not have the ${algorithm} that the client names`,
    official: `${algorithm} blobs/bad digest ${how}`,
    async check(repository: Repository) {
      const good = await blobOfThreeChunks(repository, repository.name, algorithm)
      const bad = { digest: good.digest, bytes: new Uint8Array([...good.bytes, ...textBytes('more')]) }
      expectRefusal(await push(repository, bad), 400)
      await expectNoBlob(repository, bad.digest)
    },
  }))
}

export const blobCases: readonly Case[] = algorithms.flatMap((algorithm) => [
  missingCase(algorithm),
  ...pushCases(algorithm),
  mountCase('mounts a blob of another repository', 'mount', algorithm, true),
  mountCase('finds the blob to mount by itself', 'mount anonymous', algorithm, false),
  missingMountCase(algorithm),
  cancelCase(algorithm),
  ...oddContentCases(algorithm),
  ...badDigestCases(algorithm),
])
