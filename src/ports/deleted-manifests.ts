import type { Tag } from '../oci/names.ts'
import type { Actor } from './actor.ts'
import type { ManifestSummary, NewManifest } from './manifests.ts'
import type { RepositoryRow } from './repositories.ts'
import type { RowId } from './row-id.ts'

/** Why a manifest was deleted. The names are stored. */
export type DeletionCause = 'manifest deleted' | 'tags deleted' | 'repository deleted' | 'untagged' | 'policy'

/** A deleted manifest that can be undeleted. */
export interface DeletedManifest extends ManifestSummary, DeletedPosition {
  readonly artifactType: string | undefined
  /** The tags that the deletion removed. */
  readonly tags: readonly Tag[]
  readonly deletedBy: string
  readonly cause: DeletionCause
}

/** The place of a deleted manifest in the list. */
export interface DeletedPosition {
  /** Milliseconds since 1970, by the clock of the metadata store. */
  readonly deletedAt: number
  readonly id: RowId
}

/** One digest that a deleted manifest names. */
export interface DeletedEntry {
  readonly digest: string
  /** Undefined: a manifest, or content that was missing. */
  readonly blobId: RowId | undefined
  readonly isManifest: boolean
  readonly isDamaged: boolean
}

/** All that is needed to store the manifest again. */
export interface DeletedContent {
  readonly id: RowId
  readonly manifest: NewManifest
  readonly entries: readonly DeletedEntry[]
  readonly tags: readonly Tag[]
}

/** The result of `expire`. */
export interface DeletedBatch {
  readonly removed: number
  /** Where the next batch begins. Undefined if there is nothing more to look at. */
  readonly next: DeletedPosition | undefined
}

/**
 * Copies of deleted manifests. A copy keeps the blobs of its manifest from the collector: an entry refers to the blob with a
 * foreign key. It does not keep the links of the blobs, so the blobs are no longer visible in the repository when their leases
 * are over. A repository has at most one copy of each digest, that of the last deletion.
 */
export interface DeletedManifests {
  /** At most `limit` copies of the repository before `before`, the last deletions first. */
  list(repository: RepositoryRow, before: DeletedPosition | undefined, limit: number): Promise<DeletedManifest[]>

  // The following methods are for transactions.

  /** Before the removal of a manifest: keeps a copy. */
  keep(
    repository: RepositoryRow,
    manifestId: RowId,
    deletion: { readonly actor: Actor; readonly cause: DeletionCause; readonly tags: readonly Tag[] },
  ): Promise<void>

  /** The copy of this digest. No other transaction can remove it before this one ends. */
  findLocked(repository: RepositoryRow, digest: string): Promise<DeletedContent | undefined>

  /** Removes the copy, and queues its blobs for the collector. */
  remove(repository: RepositoryRow, id: RowId): Promise<void>

  /**
   * Looks at the next `limit` copies after `after`, the oldest first, that are at least `keepMs` old, and removes them.
   * Skips disabled accounts.
   */
  expire(keepMs: number, after: DeletedPosition | undefined, limit: number): Promise<DeletedBatch>
}
