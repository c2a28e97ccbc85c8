/**
 * - `store-id`: the random id of this metadata store.
 * - `has-blobs`: this metadata store has claimed a blob store (`BlobStore.claim`). If this mark exists, a blob store
 *   that has no owner name is not the claimed one, and is refused.
 * - `read-only`: the registry is being or was moved to other stores, and takes no changes here. The value is the
 *   state of the move (`app/store-move/move-state.ts`).
 * - `move-from`: the `store-id` of the registry that is being moved to here. No server starts until the move is
 *   finished.
 * - `moved-from`: the id of the move that brought the rows.
 * - `empty-repositories`: where the collector continues its search for empty repositories.
 * - `tag-history`: where the collector continues its search for old moves of tags.
 * - `untagged-manifests`: up to where the collector has looked at candidates for untagged manifests.
 * - `old-untagged-manifests`: where the collector continues its search for untagged manifests to remove.
 * - `deleted-manifests`: where the collector continues its removal of copies of deleted manifests.
 * - `usage`: what exists since before usage was recorded is being counted, and where that continues.
 * - `retention`: where the scheduled run of retention policies continues.
 */
export type MarkName =
  | 'retention'
  | 'store-id'
  | 'has-blobs'
  | 'read-only'
  | 'move-from'
  | 'moved-from'
  | 'empty-repositories'
  | 'tag-history'
  | 'untagged-manifests'
  | 'old-untagged-manifests'
  | 'deleted-manifests'
  | 'usage'

/** Texts about the metadata store as a whole. */
export interface Marks {
  find(name: MarkName): Promise<string | undefined>

  // The following methods are for transactions.

  /** As `find`, with a shared lock: no transaction that calls `lockExclusively` runs between this call and the end. */
  findLocked(name: MarkName): Promise<string | undefined>

  /**
   * Takes an exclusive lock against all transactions that call `findLocked` of a mark or an account: waits for those
   * that run, and delays new ones until this transaction ends. All of them see afterwards what this one has changed.
   * Reads without a lock are not delayed. To prevent deadlocks, a transaction that locks both locks the mark before the
   * account.
   */
  lockExclusively(): Promise<void>

  set(name: MarkName, text: string): Promise<void>

  remove(name: MarkName): Promise<void>
}
