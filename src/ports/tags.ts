import type { Tag } from '../oci/names.ts'
import type { RepositoryKey, RepositoryRow } from './repositories.ts'
import type { RowId } from './row-id.ts'

/** The tags of repositories. A tag points to one manifest of its repository. */
export interface Tags {
  /** At most `limit` tags after `after`, in byte order. Undefined `limit`: all. */
  list(repository: RepositoryRow, after: string | undefined, limit: number | undefined): Promise<Tag[]>

  /** Inside a transaction. Creates or moves the tag, atomically for readers. */
  point(repository: RepositoryRow, tag: Tag, manifestId: RowId): Promise<void>

  /** Removes the tag, not its manifest. False if there is no such tag. */
  remove(repositoryKey: RepositoryKey, tag: Tag): Promise<boolean>

  /** Inside a transaction. Removes all tags of the manifest. */
  removeAllOf(repository: RepositoryRow, manifestId: RowId): Promise<void>
}
