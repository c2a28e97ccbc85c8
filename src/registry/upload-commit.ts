import { type RunningHash, startHash } from '../lib/hashing.ts'
import { algorithmOf, type Digest } from '../oci/digest.ts'
import { type LostBytes, RegistryRefusal, Unavailable } from '../oci/errors.ts'
import type { BlobStore, CompleteObject, StorageKey } from '../ports/blob-store.ts'
import type { BlobRow } from '../ports/blobs.ts'
import type { MetadataStore, Tables } from '../ports/metadata-store.ts'
import type { Upload, UploadOwner } from '../ports/uploads.ts'
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

interface CommitNeeds {
  readonly blobs: Pick<BlobStore, 'has'>
  readonly metadata: Pick<MetadataStore, 'blobs' | 'transaction'>
  /** Is told of lost bytes that were found, for the log. */
  readonly noteLoss?: (lost: LostBytes) => void
}

/** An upload whose bytes are complete, durable and verified. */
interface VerifiedUpload {
  readonly owner: UploadOwner
  readonly upload: Upload
  readonly digest: Digest
  readonly object: CompleteObject
  readonly sizeBytes: number
}

/** Each look after the first needs another push, or a read, that changed the same blob in between. */
const looksMax = 10

/**
 * Bytes first, rows second: the object is complete and verified before a row names it. Where the account has the blob
 * already, the new bytes are a duplicate, and are dropped, only if the stored object is still there. That is looked up
 * between two transactions, because a store may take long to answer. A new blob needs one transaction and no look. Where
 * the store cannot be asked, the push fails: the new bytes may be the only ones.
 */
export async function commitUpload(needs: CommitNeeds, verified: VerifiedUpload): Promise<void> {
  let present: StorageKey | undefined
  for (let looks = 0; looks < looksMax; looks += 1) {
    const unchecked = await commitUnlessUnchecked(needs, verified, present)
    if (unchecked === undefined) return
    present = (await isPresent(needs, verified, unchecked)) ? unchecked.storageKey : undefined
  }
  throw new Unavailable('the metadata store', { cause: new Error(`${verified.digest} changes all the time`) })
}

/** The account has the blob, and nobody has looked whether its object is there. */
class Unchecked extends Error {
  override readonly name = 'Unchecked'
  readonly blob: BlobRow

  constructor(blob: BlobRow) {
    super('the account has this blob already')
    this.blob = blob
  }
}

/** Gives the account's blob, and changes nothing, if its object is another than the one that is known to be present. */
async function commitUnlessUnchecked(
  { metadata }: CommitNeeds,
  verified: VerifiedUpload,
  present: StorageKey | undefined,
): Promise<BlobRow | undefined> {
  try {
    await metadata.transaction((tables) => writeRows(tables, verified, present))
    return undefined
  } catch (error) {
    if (error instanceof Unchecked) return error.blob
    throw error
  }
}

async function writeRows(
  tables: Tables,
  { upload, digest, object, sizeBytes }: VerifiedUpload,
  present: StorageKey | undefined,
): Promise<void> {
  const { key, leftovers } = object
  await checkStillTakesChanges(tables, upload.repository.accountId)
  if (!(await tables.uploads.commit(upload, digest))) throw new RegistryRefusal('upload-unknown', { id: upload.id })
  const { accountId } = upload.repository
  const made =
    (await tables.blobs.add(accountId, digest, sizeBytes, key)) ??
    (await tables.blobs.replaceDamaged(accountId, digest, sizeBytes, key))
  const blob = made ?? (await tables.blobs.findLocked(accountId, digest))
  if (blob === undefined) throw new Unavailable('the metadata store', { cause: new Error(`${digest} came and went`) })
  if (made === undefined) {
    if (blob.storageKey !== present) throw new Unchecked(blob)
    // The account has these bytes already: ours are a duplicate.
    await tables.garbage.trash({ storageKey: key, notes: undefined })
  }
  for (const leftover of leftovers) await tables.garbage.trash(leftover)
  await tables.blobs.link(upload.repository, blob.id, digest)
}

/** A blob whose object is lost is marked, so that the next transaction replaces it. */
async function isPresent(
  { blobs, metadata, noteLoss }: CommitNeeds,
  { owner, digest }: VerifiedUpload,
  { id, storageKey, sizeBytes }: BlobRow,
): Promise<boolean> {
  if (await blobs.has(storageKey, sizeBytes)) return true
  const isFirst = await metadata.blobs.markDamaged({ blobId: id, storageKey })
  if (isFirst) noteLoss?.({ repository: owner.repository, digest, storageKey })
  return false
}
