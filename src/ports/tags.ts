import type { Digest } from '../oci/digest.ts'
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

/** A tag as a retention policy sees it. */
export interface TagState {
  readonly tag: Tag
  readonly digest: Digest
  readonly manifestId: RowId
  /** When the tag was pushed or restored last, in milliseconds since 1970 by the clock of the metadata store. */
  readonly pushedAt: number
  /** The last pull of its manifest, by any tag or by digest. Undefined: never. */
  readonly pulledAt: number | undefined
  /**
   * Of a tag such as `sha256-<hex>.sig`, with which clients attach signatures and the like: whether the repository has the
   * manifest with this digest. Undefined for other tags.
   */
  readonly hasSubject: boolean | undefined
  /** Changes with each push of the tag. */
  readonly version: number
}

/** The tags of repositories. A tag points to one manifest of its repository. Every move is recorded in `TagHistory`. */
export interface Tags {
  /** At most `limit` tags after `after`, in byte order. Undefined `limit`: all. */
  list(repository: RepositoryRow, after: string | undefined, limit: number | undefined): Promise<Tag[]>

  /** At most `limit` tags after `after`, in byte order. */
  listStates(repository: RepositoryRow, after: string | undefined, limit: number): Promise<TagState[]>

  /** Inside a transaction. Removes the tag unless it was pushed or removed since the state was read. */
  removeUnchanged(repository: RepositoryRow, state: TagState, change: TagChange): Promise<boolean>

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
