import type { Digest } from '../oci/digest.ts'
import type { RepositoryName } from '../oci/names.ts'
import type { StorageKey } from './blob-store.ts'
import type { RepositoryRow, Scope } from './repositories.ts'
import type { RowId } from './row-id.ts'

/** A repository's claim on a blob. A blob is visible only through a link: its bytes alone prove nothing. */
export interface LinkedBlob {
  readonly blobId: RowId
  readonly repositoryId: RowId
  readonly sizeBytes: number
  readonly storageKey: StorageKey
  /** Since when the link's lease runs, as an age by the store's clock. */
  readonly leaseAgeMs: number
  /** The bytes were missing, or not `sizeBytes` long, when they were last read. */
  readonly isDamaged: boolean
}

/** A blob that a repository links, locked. A damaged one counts as absent for whoever wants to use it. */
export interface LockedBlob {
  readonly id: RowId
  readonly isDamaged: boolean
}

/** A blob of the account, whichever repository links it. */
export interface BlobRow {
  readonly id: RowId
  readonly sizeBytes: number
  readonly storageKey: StorageKey
}

export interface Blobs {
  find(scope: Scope, digest: Digest): Promise<LinkedBlob | undefined>

  /**
   * Repositories of the account that link the blob, for mounting without a source; `candidates` limits how many are named.
   * The caller must be allowed to pull from the one that is used. A damaged blob has none.
   */
  listHolders(accountId: RowId, digest: Digest, candidates: number): Promise<RepositoryName[]>

  /**
   * Marks a blob as damaged: its bytes are missing, or not as many as its row says. Its links, leases and manifest entries
   * stay. False, and nothing changed, if the blob is marked already, has another key by now, or is gone.
   */
  markDamaged(blob: Pick<LinkedBlob, 'blobId' | 'storageKey'>): Promise<boolean>

  /** Takes the mark away, because the bytes were found again. The same conditions. */
  unmarkDamaged(blob: Pick<LinkedBlob, 'blobId' | 'storageKey'>): Promise<boolean>

  // The rest is for transactions.

  /** The blobs of the repository with these digests; they cannot be collected before the transaction ends. */
  lockByDigests(repository: RepositoryRow, digests: readonly string[]): Promise<ReadonlyMap<string, LockedBlob>>

  /** The account's blob, kept from collection until the transaction ends. */
  findLocked(accountId: RowId, digest: Digest): Promise<BlobRow | undefined>

  /** Records complete, durable, verified bytes; `undefined` when the account has this blob already. */
  add(accountId: RowId, digest: Digest, sizeBytes: number, key: StorageKey): Promise<BlobRow | undefined>

  /**
   * Gives a damaged blob complete, durable, verified bytes in place of the lost ones: the mark goes, and the former key
   * moves to the trash. `undefined`, and nothing changed, if the account has no damaged blob of this digest: of several
   * that replace it at once, one does.
   */
  replaceDamaged(accountId: RowId, digest: Digest, sizeBytes: number, key: StorageKey): Promise<BlobRow | undefined>

  /**
   * Links the blob with a fresh lease, queues it for the collector's look after that lease, and lets manifests that
   * waited for it point to it.
   */
  link(repository: RepositoryRow, blobId: RowId, digest: Digest): Promise<void>

  /** Begins the lease of these links anew and queues their blobs: what named them is going away. */
  renewLeases(repository: RepositoryRow, blobIds: readonly RowId[]): Promise<void>

  /** Whether a manifest of the repository names the blob. */
  isUsed(repository: RepositoryRow, blobId: RowId): Promise<boolean>

  /** Takes the link away and queues the blob; other repositories keep theirs. */
  unlink(repository: RepositoryRow, blobId: RowId): Promise<void>
}
