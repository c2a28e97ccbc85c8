import { type RunningHash, startHash } from '../lib/hashing.ts'
import { algorithmOf, type Digest } from '../oci/digest.ts'
import { RegistryRefusal, Spoiled, Unavailable } from '../oci/errors.ts'
import type { CompleteObject } from '../ports/blob-store.ts'
import type { Tables } from '../ports/metadata-store.ts'
import type { Upload, UploadId, UploadOwner } from '../ports/uploads.ts'
import { checkStillTakesChanges } from './read-only.ts'
import type { IncomingChunk, WritingTurn } from './upload-writing.ts'
import { beginTurn, endSession, endTurn, findFinished, inTurn, startUpload, type UploadNeeds } from './uploads.ts'

/**
 * Closes an upload: the last bytes, if any; then the whole is made durable, proved to be what its digest says, and
 * becomes a blob of the repository in one transaction. Only after that is it acknowledged.
 *
 * Content of another digest ends the session: what was sent is not what was meant, and has to be sent again. A broken
 * connection does not: its bytes stay, and the closing request can be repeated. Nor does a store that fails, unless it says
 * that what it has can never become whole.
 */
export async function finishUpload(
  needs: UploadNeeds,
  owner: UploadOwner,
  id: UploadId,
  digest: Digest,
  chunk: IncomingChunk,
): Promise<void> {
  if ((await findFinished(needs, owner, id)) === digest) return
  await inTurn(needs, owner, id, chunk, (upload, onProgress) =>
    close(needs, owner, upload, needs.running.takeHash(upload), digest, chunk, onProgress),
  )
}

/** A whole blob in one request: the session is opened, written and closed by it. */
export async function uploadAtOnce(
  needs: UploadNeeds,
  owner: UploadOwner,
  digest: Digest,
  chunk: IncomingChunk,
): Promise<void> {
  if (chunk.first !== undefined && chunk.first !== 0) throw new RegistryRefusal('upload-out-of-order', { received: 0 })
  const upload = await startUpload(needs, owner, 'ours')
  try {
    await close(needs, owner, upload, undefined, digest, chunk, () => undefined)
  } catch (error) {
    // Nobody was told the session's id, so nobody can go on with it.
    await endSession(needs, owner, upload.id)
    throw error instanceof Spoiled ? new Unavailable('the blob store', { cause: error }) : error
  }
}

async function close(
  needs: UploadNeeds,
  owner: UploadOwner,
  upload: Upload,
  hash: RunningHash | undefined,
  digest: Digest,
  chunk: IncomingChunk,
  onProgress: () => void,
): Promise<void> {
  const turn = await beginTurn(needs, owner, upload, hash, algorithmOf(digest))
  try {
    await turn.receive(chunk, onProgress)
    const object = await turn.writer.complete()
    const actual = await hashOfStored(needs, turn, object, digest)
    if (actual !== digest) {
      if (await needs.metadata.uploads.isOpen(upload)) await endSession(needs, owner, upload.id)
      throw new RegistryRefusal('digest-mismatch', { digest, actual })
    }
    await needs.metadata.transaction((tables) => commit(tables, upload, digest, object, turn.sizeBytes))
  } catch (error) {
    // Back to where the session stood before: a client that repeats its closing request sends the same bytes again. Whether
    // the rows were written may be unknown (a connection that is cut at COMMIT); an open session proves that they were not.
    const isOurs = await needs.metadata.uploads.isOpen(upload).catch(() => false)
    if (isOurs) await turn.writer.rewind()
    await endTurn(needs, owner, upload, error)
    throw error
  } finally {
    await turn.writer.close()
  }
}

/**
 * Trusts the hash of the stream only if one unbroken chain of writers fed it, here or, up to the last byte, on another
 * replica; else reads what is stored.
 */
async function hashOfStored(
  needs: UploadNeeds,
  turn: WritingTurn,
  object: CompleteObject,
  digest: Digest,
): Promise<string> {
  const algorithm = algorithmOf(digest)
  const { receivedDigest, object: received } = turn.upload
  if (object.isCertain && turn.hash?.algorithm === algorithm) return `${algorithm}:${turn.hash.hex()}`
  const isCovered = receivedDigest === digest && received.sizeBytes === turn.sizeBytes
  if (object.isCertain && isCovered) return receivedDigest
  const bytes = await needs.blobs.read(object.key, turn.sizeBytes)
  if (bytes === undefined) throw new Unavailable('the blob store', { cause: new Error('an upload is not all there') })
  const hash = startHash(algorithm)
  for await (const chunk of bytes) hash.update(chunk)
  return `${algorithm}:${hash.hex()}`
}

/** Bytes first, rows second: the object is complete and verified before this names it. */
async function commit(
  tables: Tables,
  upload: Upload,
  digest: Digest,
  { key, leftovers }: CompleteObject,
  sizeBytes: number,
): Promise<void> {
  await checkStillTakesChanges(tables, upload.repository.accountId)
  if (!(await tables.uploads.finish(upload, digest))) throw new RegistryRefusal('upload-unknown', { id: upload.id })
  const { accountId } = upload.repository
  const made =
    (await tables.blobs.insert(accountId, digest, sizeBytes, key)) ??
    (await tables.blobs.replaceDamaged(accountId, digest, sizeBytes, key))
  const blob = made ?? (await tables.blobs.findLocked(accountId, digest))
  if (blob === undefined) throw new Unavailable('the metadata store', { cause: new Error(`${digest} came and went`) })
  // The account has these bytes already: ours are a duplicate.
  if (made === undefined) await tables.garbage.trash({ storageKey: key, notes: undefined })
  for (const leftover of leftovers) await tables.garbage.trash(leftover)
  await tables.blobs.link(upload.repository, blob.id, digest)
}
