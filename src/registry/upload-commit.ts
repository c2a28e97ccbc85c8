import { type RunningHash, startHash } from '../lib/hashing.ts'
import { algorithmOf, type Digest } from '../oci/digest.ts'
import { RegistryRefusal, Unavailable } from '../oci/errors.ts'
import type { BlobStore, CompleteObject } from '../ports/blob-store.ts'
import type { Tables } from '../ports/metadata-store.ts'
import type { Upload } from '../ports/uploads.ts'
import { checkStillTakesChanges } from './read-only.ts'

/** What a turn knows of the bytes that it has written. */
interface WrittenBytes {
  readonly upload: Upload
  readonly hash: RunningHash | undefined
  readonly sizeBytes: number
  /** Throws when the turn was lost, so that nobody reads on in vain. */
  checkStillOurs(): void
}

/**
 * The digest of a complete object. The hash of the stream counts only if one unbroken chain of writers fed it, here or, up
 * to the last byte, on another replica. Otherwise the stored bytes are read.
 */
export async function hashOfStored(
  needs: { readonly blobs: Pick<BlobStore, 'read'> },
  turn: WrittenBytes,
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
  for await (const chunk of bytes) {
    turn.checkStillOurs()
    hash.update(chunk)
  }
  return `${algorithm}:${hash.hex()}`
}

/** Bytes first, rows second: the object is complete and verified before this names it. */
export async function commitUpload(
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
