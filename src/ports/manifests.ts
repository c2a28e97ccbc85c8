import type { Digest, WellFormedDigest } from '../oci/digest.ts'
import type { Reference } from '../oci/names.ts'
import type { Awaitable } from './awaitable.ts'
import type { PullMark } from './pulls.ts'
import type { RepositoryKey, RepositoryRow } from './repositories.ts'
import type { RowId } from './row-id.ts'

export interface ManifestSummary {
  readonly digest: Digest
  readonly mediaType: string
  readonly sizeBytes: number
}

export interface StoredManifest extends ManifestSummary {
  readonly bytes: Uint8Array
}

/** A manifest that a look-up has found. */
export interface Found {
  /** For the recorder of pulls. A look-up alone is no pull. */
  readonly mark: PullMark
}

export interface NewManifest extends StoredManifest {
  readonly subject: WellFormedDigest | undefined
  readonly artifactType: string | undefined
  readonly annotations: Readonly<Record<string, string>> | undefined
}

/** One digest that a manifest names: a blob, a manifest, or (both undefined) content that is missing. */
export interface ManifestEntry {
  readonly digest: WellFormedDigest
  readonly blobId: RowId | undefined
  readonly childId: RowId | undefined
}

/** A manifest that has a subject, with the members of the referrers list. */
export interface Referrer extends ManifestSummary {
  readonly artifactType: string | undefined
  /** A JSON object as text, because it is only passed on and may be large. */
  readonly annotationsJson: string | undefined
}

export interface ReferrerBatch {
  readonly referrers: readonly Referrer[]
  /** Whether there are more after the last one. */
  readonly hasMore: boolean
}

export interface ReferrerQuery {
  readonly subject: WellFormedDigest
  /** Empty: any type. */
  readonly artifactTypes: readonly string[]
  /** The digest after which the batch starts. */
  readonly after: string | undefined
  readonly limit: number
  /**
   * About how many bytes of JSON the batch may have. The store reads no more than that into memory. A batch always has
   * one referrer, however large it is.
   */
  readonly bytesMax: number
}

/** The manifests of repositories. The bytes of a manifest never change. */
export interface Manifests {
  /** One consistent read, by tag or digest: a concurrent push of the tag gives the old manifest or the new one. */
  find(repositoryKey: RepositoryKey, reference: Reference): Awaitable<(StoredManifest & Found) | undefined>

  /** As `find`, without the bytes. */
  describe(repositoryKey: RepositoryKey, reference: Reference): Awaitable<(ManifestSummary & Found) | undefined>

  /** The manifests of the repository that have this subject, in the order of their digests. */
  listReferrers(repositoryKey: RepositoryKey, query: ReferrerQuery): Promise<ReferrerBatch>

  // The following methods are for transactions.

  /** The ids of those that the repository has. They cannot be removed before the transaction ends. */
  lockByDigests(repository: RepositoryRow, digests: readonly string[]): Promise<ReadonlyMap<string, RowId>>

  /** The id of the manifest. No other transaction can change or remove it before this one ends. */
  findLocked(repository: RepositoryRow, digest: Digest): Promise<RowId | undefined>

  /** Adds the manifest if the repository does not have it. Otherwise sets its media type. */
  save(repository: RepositoryRow, manifest: NewManifest): Promise<{ readonly id: RowId; readonly isNew: boolean }>

  /**
   * Adds the entries. If the manifest was pushed before, sets the blob or child of entries that were missing content.
   */
  saveEntries(repository: RepositoryRow, manifestId: RowId, entries: readonly ManifestEntry[]): Promise<void>

  /** Entries of other manifests that wait for this digest point to this manifest afterwards. */
  fillEntries(repository: RepositoryRow, digest: Digest, childId: RowId): Promise<void>

  /** Whether an index of the repository lists this manifest. */
  isListed(repository: RepositoryRow, manifestId: RowId): Promise<boolean>

  /** In the indexes that list this manifest, makes its entries wait for it again. */
  detachFromIndexes(repository: RepositoryRow, manifestId: RowId): Promise<void>

  /** The blobs that the manifest names, in the order of their ids. One order everywhere prevents deadlocks. */
  listBlobs(repository: RepositoryRow, manifestId: RowId): Promise<RowId[]>

  /** Removes the manifest and its entries. Rejects if a tag points to it or an index lists it. */
  remove(repository: RepositoryRow, manifestId: RowId): Promise<void>
}
