import type { Tag } from '../oci/names.ts'
import type { RepositoryRow, Scope } from './repositories.ts'
import type { RowId } from './row-id.ts'

export interface Tags {
  /** In byte order, after `after`, at most `limit` (all when undefined). */
  list(repository: RepositoryRow, after: string | undefined, limit: number | undefined): Promise<Tag[]>

  /** Makes the tag point to the manifest, whether it pointed elsewhere or nowhere before. */
  point(repository: RepositoryRow, tag: Tag, manifestId: RowId): Promise<void>

  /** Removes the tag alone; false when there was none. */
  remove(scope: Scope, tag: Tag): Promise<boolean>

  /** Removes all tags of a manifest. */
  removeAllOf(repository: RepositoryRow, manifestId: RowId): Promise<void>
}
