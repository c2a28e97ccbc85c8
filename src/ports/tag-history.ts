import type { Digest } from '../oci/digest.ts'
import type { Tag } from '../oci/names.ts'
import type { RepositoryRow } from './repositories.ts'
import type { RowId } from './row-id.ts'

/** What moved a tag. The names are stored. */
export type TagMoveCause = 'push' | 'restore' | 'undelete' | 'tag deleted' | 'manifest deleted' | 'policy'

/** One move of a tag. */
export interface TagMove extends HistoryPosition {
  /** Undefined: the tag did not exist before. */
  readonly from: Digest | undefined
  /** Undefined: the tag did not exist afterwards. */
  readonly to: Digest | undefined
  /** The subject of the caller. */
  readonly movedBy: string
  readonly cause: TagMoveCause
}

/** The result of `removeSuperseded`. */
export interface HistoryBatch {
  readonly removed: number
  /** Where the next batch begins. Undefined if there is nothing more to look at. */
  readonly next: HistoryPosition | undefined
}

/** The place of a move in the history. Of two moves in the same millisecond, the later one has the larger id. */
export interface HistoryPosition {
  /** Milliseconds since 1970, by the clock of the metadata store. */
  readonly movedAt: number
  readonly id: RowId
}

/**
 * The moves of tags. `Tags` records each move in the transaction of the move, so the history is complete from the time when
 * the schema got it. A push of the digest that the tag has already is no move.
 */
export interface TagHistory {
  /** At most `limit` moves of the tag before `before`, the newest first. */
  list(repository: RepositoryRow, tag: Tag, before: HistoryPosition | undefined, limit: number): Promise<TagMove[]>

  /** The last move of the tag that was not after `time`. */
  findLastUntil(repository: RepositoryRow, tag: Tag, time: number): Promise<TagMove | undefined>

  /** The first move of the tag after `time`. */
  findFirstAfter(repository: RepositoryRow, tag: Tag, time: number): Promise<TagMove | undefined>

  /**
   * Inside a transaction. Looks at the next `limit` moves after `after`, the oldest first, that are at least `keepMs` old,
   * and removes the earlier moves of their tags. If such a move deleted its tag, it is removed too. So the history still
   * tells where a tag pointed at every moment of the last `keepMs`. Skips disabled accounts.
   */
  removeSuperseded(keepMs: number, after: HistoryPosition | undefined, limit: number): Promise<HistoryBatch>
}
