// Every way to push a blob. Each checks what comes before and gives back the closing answer, which the caller judges:
// the same push with a wrong digest must be refused.
import { addressOf, type Reply, type Repository, send, sibling, withQuery } from './client.ts'
import { type Algorithm, type Content, mediaTypes, noiseBlob } from './content.ts'
import { expectHeader, expectRefusal, expectStatus, fail, locationOf } from './expectations.ts'

export type BlobPush = (repository: Repository, blob: Content) => Promise<Reply>

const octets = { 'content-type': mediaTypes.octets }
const smallestChunkBytes = 1024

export async function startUpload(repository: Repository): Promise<{ location: URL; chunkBytesMin: number }> {
  const reply = await send(repository, 'POST', addressOf(repository, 'blobs/uploads/'))
  expectStatus(reply, 202)
  const chunkBytesMin = Number(reply.headers.get('oci-chunk-min-length') ?? 0)
  if (!Number.isSafeInteger(chunkBytesMin)) fail(reply, 'OCI-Chunk-Min-Length must be a number of bytes')
  return { location: locationOf(reply, repository), chunkBytesMin }
}

/** distribution-spec, "Single POST". */
export async function pushByPost(repository: Repository, { digest, bytes }: Content): Promise<Reply> {
  return send(repository, 'POST', addressOf(repository, 'blobs/uploads/', { digest }), { headers: octets, body: bytes })
}

/** distribution-spec, "POST then PUT". */
export async function pushByPut(repository: Repository, { digest, bytes }: Content): Promise<Reply> {
  const { location } = await startUpload(repository)
  return send(repository, 'PUT', withQuery(location, { digest }), { headers: octets, body: bytes })
}

/** As docker does: one PATCH that says neither its range nor its length, then an empty PUT. */
export async function pushAsStream(repository: Repository, { digest, bytes }: Content): Promise<Reply> {
  const { location } = await startUpload(repository)
  const patched = await send(repository, 'PATCH', location, { headers: octets, body: bytes, isStreamed: true })
  return close(repository, continuation(patched, repository, bytes.length), digest)
}

export interface Chunking {
  /** The closing PUT brings the last chunk. */
  readonly isLastInPut: boolean
  /** Before each good chunk come the wrong ones: too far ahead, and again from the start. */
  readonly isOutOfOrder: boolean
}

export function pushInChunks(chunking: Chunking): BlobPush {
  return async (repository, { digest, bytes }) => {
    const upload = await startUpload(repository)
    const third = Math.floor(bytes.length / 3) + 1
    const chunkBytes = Math.max(third, upload.chunkBytesMin, smallestChunkBytes)
    let location = upload.location
    for (let start = 0; start < bytes.length; start += chunkBytes) {
      const end = Math.min(start + chunkBytes, bytes.length)
      const closing = chunking.isLastInPut ? digest : undefined
      if (chunking.isOutOfOrder) {
        for (const wrong of [start + chunkBytes, 0].filter((first) => first !== start && first < bytes.length)) {
          const chunk = { bytes, start: wrong, end: Math.min(wrong + chunkBytes, bytes.length) }
          location = await sendWrongChunk(repository, location, chunk, start, closing)
        }
      }
      const sent = await sendChunk(repository, location, { bytes, start, end }, closing)
      if (sent.method === 'PUT') return sent
      location = continuation(sent, repository, end)
    }
    return close(repository, location, digest)
  }
}

interface Chunk {
  readonly bytes: Uint8Array
  readonly start: number
  /** Not included. */
  readonly end: number
}

/** A PATCH, or with a digest for the closing the PUT of the last chunk. */
async function sendChunk(
  repository: Repository,
  location: URL,
  { bytes, start, end }: Chunk,
  closing: string | undefined,
): Promise<Reply> {
  const ask = { headers: { ...octets, 'content-range': `${start}-${end - 1}` }, body: bytes.subarray(start, end) }
  if (closing === undefined || end < bytes.length) return send(repository, 'PATCH', location, ask)
  return send(repository, 'PUT', withQuery(location, { digest: closing }), ask)
}

/** 416 for the chunk; after it the session tells how far it is, and goes on. Gives the location to go on with. */
async function sendWrongChunk(
  repository: Repository,
  location: URL,
  chunk: Chunk,
  receivedBytes: number,
  closing: string | undefined,
): Promise<URL> {
  const refused = await sendChunk(repository, location, chunk, closing)
  expectRefusal(refused, 416)
  // The very address that was refused, with the parameter `digest` of a PUT: the official suite asks so.
  const status = await send(repository, 'GET', refused.url)
  expectStatus(status, 204)
  expectHeader(status, 'range', receivedRange(receivedBytes))
  return locationOf(status, repository)
}

/** What a PATCH must answer, and where it says to go on. */
function continuation(reply: Reply, repository: Repository, receivedBytes: number): URL {
  expectStatus(reply, 202)
  expectHeader(reply, 'range', receivedRange(receivedBytes))
  return locationOf(reply, repository)
}

/** All of the blob so far. For nothing at all it is `0-0` by custom: docker fails on `0--1`. */
function receivedRange(receivedBytes: number): string {
  return `0-${Math.max(0, receivedBytes - 1)}`
}

async function close(repository: Repository, location: URL, digest: string): Promise<Reply> {
  return send(repository, 'PUT', withQuery(location, { digest }), { headers: octets, body: new Uint8Array() })
}

/** A blob that takes three chunks, the last one a little shorter, whatever the registry's smallest chunk is. */
export async function blobOfThreeChunks(repository: Repository, seed: string, algorithm: Algorithm): Promise<Content> {
  const { location, chunkBytesMin } = await startUpload(repository)
  await cancelUpload(repository, location)
  return noiseBlob(seed, Math.max(smallestChunkBytes, chunkBytesMin) * 3 - 5, algorithm)
}

/** end-14: the session is gone at once. */
export async function cancelUpload(repository: Repository, location: URL): Promise<void> {
  expectStatus(await send(repository, 'DELETE', location), 204)
  expectRefusal(await send(repository, 'GET', location), 404)
}

/** end-11, with the repository to mount from or without. */
export async function mountBlob(repository: Repository, digest: string, from?: Repository): Promise<Reply> {
  const query = { mount: digest, ...(from === undefined ? {} : { from: from.name }) }
  return send(repository, 'POST', addressOf(repository, 'blobs/uploads/', query))
}

/** The second repository of the mount cases. */
export function sourceOf(repository: Repository): Repository {
  return sibling(repository, 'source')
}
