import type { Tag } from '../oci/names.ts'
import type { Actor } from './actor.ts'
import type { RepositoryKey, RepositoryRow } from './repositories.ts'
import type { RowId } from './row-id.ts'
import type { TagMoveCause } from './tag-history.ts'

/** Who moves a tag, and why. It is recorded in the history of the tag. */
export interface TagChange {
  readonly actor: Actor
  readonly cause: TagMoveCause
}

/** The tags of repositories. A tag points to one manifest of its repository. Every move is recorded in `TagHistory`. */
export interface Tags {
  /** At most `limit` tags after `after`, in byte order. Undefined `limit`: all. */
  list(repository: RepositoryRow, after: string | undefined, limit: number | undefined): Promise<Tag[]>

  /**
   * Inside a transaction. Creates or moves the tag, atomically for readers. Returns the manifest that the tag had before.
   * Of two transactions that create the same tag, the second learns what the first has done.
   */
  point(repository: RepositoryRow, tag: Tag, manifestId: RowId, change: TagChange): Promise<RowId | undefined>

  /** Inside a transaction. Removes the tag, not its manifest. False if there is no such tag. */
  remove(repositoryKey: RepositoryKey, tag: Tag, change: TagChange): Promise<boolean>

  /** Inside a transaction. Creates the tag. False, without a change, if the tag exists. */
  create(repository: RepositoryRow, tag: Tag, manifestId: RowId, change: TagChange): Promise<boolean>

  /** Inside a transaction. Removes all tags of the manifest, and returns them. */
  removeAllOf(repository: RepositoryRow, manifestId: RowId, change: TagChange): Promise<Tag[]>
}
