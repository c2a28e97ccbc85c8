/**
 * `read-only`: the store takes no changes that anybody would see; its text says why, for operators. `store-id`: a random
 * name that no other store has. `move-from`: the store that a move to here, not finished yet, comes from. `moved-from`: the
 * move that the rows came with. `has-blobs`: a blob store has this registry's name in it; one that has none is not it.
 * `aborted-to`: the store that a move with one blob store was on its way to; what it still claims is taken back.
 * `empty-repositories`: how far the collector has looked for some.
 */
export type MarkName =
  | 'read-only'
  | 'store-id'
  | 'move-from'
  | 'moved-from'
  | 'has-blobs'
  | 'aborted-to'
  | 'empty-repositories'

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

  /** Whoever is of an older version than this, and may not know what marks forbid, cannot start; those that run go on. */
  keepOlderOut(): Promise<void>

  letOlderIn(): Promise<void>
}
