import type { Digest } from '../oci/digest.ts'
import type { RepositoryName } from '../oci/names.ts'
import type { Awaitable } from './awaitable.ts'
import type { CompleteObject, StorageKey } from './blob-store.ts'
import type { RepositoryKey, RepositoryRow } from './repositories.ts'
import type { RowId } from './row-id.ts'

/** A blob that a repository links. Clients see a blob only through a link. */
export interface LinkedBlob {
  readonly blobId: RowId
  readonly repositoryId: RowId
  readonly sizeBytes: number
  readonly storageKey: StorageKey
  /** The bytes are in the row of the blob. The blob store has no object. */
  readonly isInline: boolean
  /** When the lease of the link began: milliseconds since 1970 by the clock of the metadata store. */
  readonly leasedAt: number
  /**
   * The stored bytes were missing, or had another size, when they were last read. Never true for an inline blob: its
   * row and its bytes cannot be lost separately.
   */
  readonly isDamaged: boolean
}

/** A locked blob that a repository links. Callers that want to use a blob treat a damaged one as absent. */
export interface LockedBlob {
  readonly id: RowId
  readonly isDamaged: boolean
}

/** A blob of an account. */
export interface BlobRow {
  readonly id: RowId
  readonly sizeBytes: number
  readonly storageKey: StorageKey
  readonly isInline: boolean
}

/**
 * Complete, durable and verified bytes: an object in the blob store, or inline bytes. Inline bytes need a key of their
 * own too, although no object has it.
 */
export type NewContent = Pick<CompleteObject, 'key' | 'inlineBytes'> & { readonly sizeBytes: number }

/**
 * The blobs of an account and the links of its repositories to them. An account has each blob once. A link has a lease:
 * while it runs, the collector does not remove the link, although no manifest needs the blob yet.
 */
export interface Blobs {
  find(repositoryKey: RepositoryKey, digest: Digest): Awaitable<LinkedBlob | undefined>

  /**
   * The bytes of an inline blob. They never change, so an implementation may keep them in memory; the caller must not
   * change them. Undefined if the blob has been removed. The caller has found the blob through a link.
   */
  findInlineBytes(blob: Pick<LinkedBlob, 'blobId' | 'storageKey'>): Awaitable<Uint8Array | undefined>

  /**
   * At most `limit` repositories of the account that link the blob. Empty for a damaged blob. The caller must check the
   * right to pull from the repository that it chooses.
   */
  listHolders(accountId: RowId, digest: Digest, limit: number): Promise<RepositoryName[]>

  /**
   * Marks the blob as damaged. Links, leases and manifest entries stay. False, without a change, if the blob is marked
   * already, has another key now, is inline, or does not exist.
   */
  markDamaged(blob: Pick<LinkedBlob, 'blobId' | 'storageKey'>): Promise<boolean>

  /** Removes the mark, because the bytes were found again. False as for `markDamaged`. */
  unmarkDamaged(blob: Pick<LinkedBlob, 'blobId' | 'storageKey'>): Promise<boolean>

  // The following methods are for transactions.

  /** The blobs with these digests that the repository links. They cannot be collected before the transaction ends. */
  lockByDigests(repository: RepositoryRow, digests: readonly string[]): Promise<ReadonlyMap<string, LockedBlob>>

  /** The account's blob. It cannot be collected before the transaction ends. */
  findLocked(accountId: RowId, digest: Digest): Promise<BlobRow | undefined>

  /**
   * Adds a blob. Undefined, without a change, if the account has it. `ownerId`: the repository that this transaction will
   * link it to. Without it, the blob is not in the sums of `Usage` before its links are looked at.
   */
  add(accountId: RowId, digest: Digest, content: NewContent, ownerId?: RowId): Promise<BlobRow | undefined>

  /**
   * Gives a damaged blob new content. Removes the mark and moves the old key to the trash. Undefined, without a change,
   * if the account has no damaged blob with this digest. Of several concurrent calls, one succeeds.
   */
  replaceDamaged(accountId: RowId, digest: Digest, content: NewContent): Promise<BlobRow | undefined>

  /**
   * Links the blob, or renews its lease if it is linked. Queues it for the collector. Manifest entries of the
   * repository that wait for this digest point to the blob afterwards.
   */
  link(repository: RepositoryRow, blobId: RowId, digest: Digest): Promise<void>

  /** Starts new leases for these links, adds links that are missing, and queues the blobs for the collector. */
  renewLeases(repository: RepositoryRow, blobIds: readonly RowId[]): Promise<void>

  /**
   * Whether a manifest of the repository names the blob. Waits for transactions that use the link. No other transaction
   * can use the link before this one ends.
   */
  isUsed(repository: RepositoryRow, blobId: RowId): Promise<boolean>

  /** Removes the link of this repository and queues the blob for the collector. */
  unlink(repository: RepositoryRow, blobId: RowId): Promise<void>
}
