import type { Digest, WellFormedDigest } from '../oci/digest.ts'
import type { Reference } from '../oci/names.ts'
import type { RepositoryRow, Scope } from './repositories.ts'
import type { RowId } from './row-id.ts'

export interface ManifestSummary {
  readonly digest: Digest
  readonly mediaType: string
  readonly sizeBytes: number
}

export interface StoredManifest extends ManifestSummary {
  readonly bytes: Uint8Array
}

/** A manifest on its way in. */
export interface NewManifest extends StoredManifest {
  readonly subject: WellFormedDigest | undefined
  readonly artifactType: string | undefined
  readonly annotations: Readonly<Record<string, string>> | undefined
}

/** One thing that a manifest names: a blob, a manifest, or (both undefined) something that is not here yet. */
export interface ManifestEntry {
  readonly digest: WellFormedDigest
  readonly blobId: RowId | undefined
  readonly childId: RowId | undefined
}

/** A manifest that names a subject, as the referrers list shows it. */
export interface Referrer extends ManifestSummary {
  readonly artifactType: string | undefined
  /** A JSON object. It is only passed on, and can be large. */
  readonly annotationsJson: string | undefined
}

/** Some referrers in digest order. */
export interface ReferrerBatch {
  readonly referrers: readonly Referrer[]
  /** More come after the last one. */
  readonly hasMore: boolean
}

export interface ReferrerQuery {
  readonly subject: WellFormedDigest
  /** Any of these; empty means all. */
  readonly artifactTypes: readonly string[]
  readonly after: string | undefined
  readonly limit: number
  /**
   * Roughly the most bytes that the batch may have as JSON. The store does not read more than that into memory. The first
   * referrer is always in the batch, however large it is.
   */
  readonly bytesMax: number
}

export interface Manifests {
  /** By tag or digest, in one consistent read: the tag's manifest of one moment, never half of a move. */
  find(scope: Scope, reference: Reference): Promise<StoredManifest | undefined>

  /** As `find`, without the bytes. */
  describe(scope: Scope, reference: Reference): Promise<ManifestSummary | undefined>

  /** In digest order, so that a page can begin after the last digest of the page before. */
  listReferrers(scope: Scope, query: ReferrerQuery): Promise<ReferrerBatch>

  // The rest is for transactions.

  /** The ids of those that the repository has; they cannot go away before the transaction ends. */
  lockByDigests(repository: RepositoryRow, digests: readonly string[]): Promise<ReadonlyMap<string, RowId>>

  /** The manifest's id, kept from changing by others until the transaction ends. */
  findLocked(repository: RepositoryRow, digest: Digest): Promise<RowId | undefined>

  /** Stores the manifest, or finds it stored already; a repeated push may bring another media type. */
  save(repository: RepositoryRow, manifest: NewManifest): Promise<{ readonly id: RowId; readonly isNew: boolean }>

  /** Records what the manifest names, filling in what was missing when it was pushed before. */
  saveEntries(repository: RepositoryRow, manifestId: RowId, entries: readonly ManifestEntry[]): Promise<void>

  /** Entries of other manifests that waited for this manifest now point to it. */
  fillEntries(repository: RepositoryRow, digest: Digest, childId: RowId): Promise<void>

  /** Whether an index of the repository lists this manifest. */
  isListed(repository: RepositoryRow, manifestId: RowId): Promise<boolean>

  /** Makes the indexes that list this manifest wait for it again. */
  detachFromIndexes(repository: RepositoryRow, manifestId: RowId): Promise<void>

  /** The blobs that it names, in id order (one order everywhere, so that two deletions cannot deadlock). */
  listBlobs(repository: RepositoryRow, manifestId: RowId): Promise<RowId[]>

  /** Removes the manifest and its entries. Its tags must be gone, and no index may list it. */
  remove(repository: RepositoryRow, manifestId: RowId): Promise<void>
}
