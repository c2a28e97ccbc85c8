import type { Digest, WellFormedDigest } from '../oci/digest.ts'
import type { Tag } from '../oci/names.ts'
import type { ManifestSummary } from './manifests.ts'
import type { RepositoryRow } from './repositories.ts'
import type { RowId } from './row-id.ts'

/** A manifest with what a deletion must know of it. */
export interface ManifestNode extends ManifestSummary {
  readonly id: RowId
  readonly artifactType: string | undefined
  readonly subject: WellFormedDigest | undefined
}

export interface TaggedNode {
  readonly tag: Tag
  readonly node: ManifestNode
}

/** The bytes that only the given manifests use. */
export interface ExclusiveBytes {
  readonly blobs: number
  readonly bytes: number
}

/**
 * What depends on the manifests of a repository, for previews of deletions. Every method reads at most `limit` rows, by a key,
 * and the rows that it checks are bounded by the number of its arguments.
 */
export interface DeletionPreviews {
  findByDigest(repository: RepositoryRow, digest: Digest): Promise<ManifestNode | undefined>

  findByTag(repository: RepositoryRow, tag: Tag): Promise<ManifestNode | undefined>

  /** The manifests of the repository after `after`, in the order of their digests. */
  list(repository: RepositoryRow, after: string, limit: number): Promise<ManifestNode[]>

  /** The tags after `after` in byte order, each with its manifest. */
  listTagged(repository: RepositoryRow, after: string, limit: number): Promise<TaggedNode[]>

  listTagsOf(repository: RepositoryRow, manifestId: RowId, limit: number): Promise<Tag[]>

  /** The manifests that this index lists. */
  listChildren(repository: RepositoryRow, manifestId: RowId, limit: number): Promise<ManifestNode[]>

  /** The ids of the indexes that list this manifest. */
  listParents(repository: RepositoryRow, manifestId: RowId, limit: number): Promise<RowId[]>

  /** The manifests whose subject is this digest, in the order of their digests. */
  listReferrers(repository: RepositoryRow, subject: string, limit: number): Promise<ManifestNode[]>

  /**
   * The bytes of the blobs that no other manifest of the account names. Deleted manifests do not count: they can be undeleted
   * only until an earlier time.
   */
  measureExclusive(repository: RepositoryRow, manifestIds: readonly RowId[]): Promise<ExclusiveBytes>
}
