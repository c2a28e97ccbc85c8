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
}

/** A blob of the account, whichever repository links it. */
export interface BlobRow {
  readonly id: RowId
  readonly sizeBytes: number
}

export interface BlobLinks {
  find(scope: Scope, digest: Digest): Promise<LinkedBlob | undefined>

  /**
   * Another repository of the account that links the blob, for mounting without a source; `candidates` limits how many
   * are named. The caller must be allowed to pull from the one that is used.
   */
  listHolders(accountId: RowId, digest: Digest, candidates: number): Promise<RepositoryName[]>

  // The rest is for transactions.

  /** The blobs of the repository with these digests; they cannot be collected before the transaction ends. */
  lockByDigests(repository: RepositoryRow, digests: readonly string[]): Promise<ReadonlyMap<string, RowId>>

  /** The account's blob, kept from collection until the transaction ends. */
  findLocked(accountId: RowId, digest: Digest): Promise<BlobRow | undefined>

  /** Records complete, durable, verified bytes; `undefined` when the account has this blob already. */
  insert(accountId: RowId, digest: Digest, sizeBytes: number, key: StorageKey): Promise<BlobRow | undefined>

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
