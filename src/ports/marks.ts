/**
 * - `store-id`: the random id of this metadata store.
 * - `has-blobs`: this metadata store has claimed a blob store (`BlobStore.claim`). A blob store without an owner is not it.
 * - `read-only`: the registry is being or was moved to other stores, and takes no changes here. The text says where to.
 * - `move-from`: the `store-id` of the registry that is being moved to here. No server starts until the move is finished.
 * - `moved-from`: the id of the move that brought the rows.
 * - `empty-repositories`: where the collector continues its search for empty repositories.
 */
export type MarkName = 'store-id' | 'has-blobs' | 'read-only' | 'move-from' | 'moved-from' | 'empty-repositories'

/** Notes about the store as a whole. */
export interface Marks {
  find(name: MarkName): Promise<string | undefined>

  // The rest is for transactions.

  /** As `find`; no transaction that holds others up (below) has come between, nor does one before this one's end. */
  findLocked(name: MarkName): Promise<string | undefined>

  /**
   * Waits for the end of all transactions that have looked at a mark or an account under lock, and lets none begin to before
   * this one's end: whatever is written here then, all others see from now on. Readers do not wait. Who looks at both in one
   * transaction looks at the mark first.
   */
  holdUpOthers(): Promise<void>

  put(name: MarkName, text: string): Promise<void>

  remove(name: MarkName): Promise<void>
}
