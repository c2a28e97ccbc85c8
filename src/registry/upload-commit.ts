import { hashHex, type RunningHash, startHash } from '../lib/hashing.ts'
import { algorithmOf, type Digest } from '../oci/digest.ts'
import { type LostBytes, RegistryRefusal, Unavailable } from '../oci/errors.ts'
import type { BlobStore, CompleteObject, StorageKey } from '../ports/blob-store.ts'
import type { BlobRow } from '../ports/blobs.ts'
import type { MetadataStore, Tables } from '../ports/metadata-store.ts'
import type { Upload, UploadOwner } from '../ports/uploads.ts'
import { hasContent } from './blob-content.ts'
import { checkQuota, toLimited } from './quotas.ts'
import { staysWritable } from './read-only.ts'

/** What a turn knows about the bytes of its upload. */
interface WrittenBytes {
  readonly upload: Upload
  readonly hash: RunningHash | undefined
  readonly sizeBytes: number
}

/**
 * The digest of a complete object, in the algorithm of `expected`. The hash that was computed while the bytes arrived
 * counts only if an unbroken chain of writers computed it, on this server or, except for the last chunk, on another.
 * Otherwise the stored bytes are read. `checkNotLost` throws if the turn is lost, to end the reading early.
 */
export async function computeDigest(
  { blobs }: { readonly blobs: Pick<BlobStore, 'read'> },
  { upload, hash, sizeBytes }: WrittenBytes,
  object: CompleteObject,
  expected: Digest,
  checkNotLost: () => void,
): Promise<string> {
  const algorithm = algorithmOf(expected)
  if (object.isCertain && hash?.algorithm === algorithm) return `${algorithm}:${hash.hex()}`
  const { receivedDigest } = upload
  const coversAll = receivedDigest === expected && upload.object.sizeBytes === sizeBytes
  if (object.isCertain && coversAll) return receivedDigest
  if (object.inlineBytes !== undefined) return `${algorithm}:${hashHex(algorithm, object.inlineBytes)}`
  const bytes = await blobs.read(object.key, sizeBytes)
  if (bytes === undefined) {
    const cause = new Error('the object of the upload is missing or has the wrong size')
    throw new Unavailable('blob-store', { cause })
  }
  const computed = startHash(algorithm)
  for await (const chunk of bytes) {
    checkNotLost()
    computed.update(chunk)
  }
  return `${algorithm}:${computed.hex()}`
}

interface CommitNeeds {
  readonly blobs: Pick<BlobStore, 'has'>
  readonly metadata: Pick<MetadataStore, 'blobs' | 'transaction'>
  /** Called when stored bytes are found lost, to write a line to the log. */
  readonly noteLoss?: (lost: LostBytes) => void
}

/** An upload whose bytes are complete and verified, and durable unless they are inline. */
interface VerifiedUpload {
  readonly owner: UploadOwner
  /** The session. Undefined if one request uploaded inline bytes. */
  readonly upload: Upload | undefined
  readonly digest: Digest
  readonly object: CompleteObject
  readonly sizeBytes: number
}

/** A second or later repetition happens only if another request changed the same blob in between. */
const attemptsMax = 10

/**
 * Turns the session into a blob that the repository links. A blob that is new to the account needs one transaction. If
 * the account has the blob, the new bytes are a duplicate and go to the trash, but only if the object of the blob is
 * still in the store. This is looked up between two transactions, because a store may be slow. If the store cannot
 * answer, the commit fails: the new bytes may be the only copy.
 */
export async function commitUpload(needs: CommitNeeds, verified: VerifiedUpload): Promise<void> {
  let presentKey: StorageKey | undefined
  for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
    try {
      return await needs.metadata.transaction((tables) => writeRows(tables, verified, presentKey))
    } catch (error) {
      if (!(error instanceof UncheckedBlob)) throw error
      presentKey = (await isPresent(needs, verified, error.blob)) ? error.blob.storageKey : undefined
    }
  }
  const cause = new Error(`the blob ${verified.digest} was changed by other requests in all ${attemptsMax} attempts`)
  throw new Unavailable('metadata-store', { cause })
}

/** Rolls the transaction back: the account has the blob, and its object has not been looked up. */
class UncheckedBlob extends Error {
  override readonly name = 'UncheckedBlob'
  readonly blob: BlobRow

  constructor(blob: BlobRow) {
    super('the account has this blob already')
    this.blob = blob
  }
}

/** `presentKey`: the key of an object that was found in the store. */
async function writeRows(
  tables: Tables,
  { owner, upload, digest, object, sizeBytes }: VerifiedUpload,
  presentKey: StorageKey | undefined,
): Promise<void> {
  const { accountId } = owner
  if (!(await staysWritable(tables))) throw new RegistryRefusal('read-only')
  const repository = upload?.repository ?? (await tables.repositories.ensure(owner))
  if (upload !== undefined && !(await tables.uploads.commit(upload, digest))) {
    throw new RegistryRefusal('upload-unknown', { id: upload.id })
  }
  const content = { ...object, sizeBytes }
  const fresh = await tables.blobs.add(accountId, digest, content, repository.id)
  if (fresh !== undefined) await checkQuota(tables, toLimited(owner), { bytes: sizeBytes })
  const added = fresh ?? (await tables.blobs.replaceDamaged(accountId, digest, content))
  const blob = added ?? (await tables.blobs.findLocked(accountId, digest))
  if (blob === undefined) {
    const cause = new Error(`the blob ${digest} was removed during the commit`)
    throw new Unavailable('metadata-store', { cause })
  }
  if (added === undefined) {
    if (!blob.isInline && blob.storageKey !== presentKey) throw new UncheckedBlob(blob)
    if (object.inlineBytes === undefined) await tables.garbage.trash({ storageKey: object.key, notes: undefined })
  }
  for (const leftover of object.leftovers) await tables.garbage.trash(leftover)
  await tables.blobs.link(repository, blob.id, digest)
}

/** If the object of the blob is lost, marks the blob as damaged. Then the next transaction replaces the object. */
async function isPresent(
  { blobs, metadata, noteLoss }: CommitNeeds,
  { owner, digest }: VerifiedUpload,
  blob: BlobRow,
): Promise<boolean> {
  if (await hasContent({ blobs }, blob)) return true
  const { storageKey } = blob
  const isNewlyMarked = await metadata.blobs.markDamaged({ blobId: blob.id, storageKey })
  if (isNewlyMarked) noteLoss?.({ repository: owner.repository, digest, storageKey })
  return false
}
