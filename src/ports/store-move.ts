import type { Digest } from '../oci/digest.ts'
import type { RemovableObject, StorageKey } from './blob-store.ts'
import type { RowId } from './row-id.ts'

// What `berth migrate-store` needs of the metadata stores at both ends of a move while it copies blobs.

/** A blob of any account. */
export interface MovableBlob {
  readonly id: RowId
  /** The name of the account, for messages. */
  readonly account: string
  readonly digest: Digest
  readonly sizeBytes: number
  readonly storageKey: StorageKey
}

export interface Amount {
  readonly blobs: number
  readonly bytes: number
}

/** The blobs of the source whose bytes are in its blob store. Inline blobs are moved with their rows. */
export interface MovableBlobs {
  /** Counts all of them. Reads every row. */
  measure(): Promise<Amount>

  /**
   * At most `limit` blobs whose ids are greater than `after`, in ascending order of their ids. A blob that is added
   * during the iteration can have an id that the iteration has passed.
   */
  list(after: RowId, limit: number): Promise<MovableBlob[]>

  /** Whether a blob has this storage key. */
  has(key: StorageKey): Promise<boolean>
}

/** An object in the target's blob store that is complete, durable and verified. */
export interface CopiedObject {
  readonly sourceKey: StorageKey
  readonly storageKey: StorageKey
  readonly digest: Digest
  readonly sizeBytes: number
}

/**
 * The record of copied objects in the target, so that a move that was killed continues where it ended. The collector does
 * not remove a recorded object. The rows of the registry replace the records at the end of the move.
 */
export interface CopiedObjects {
  measure(): Promise<Amount>

  /** Those of these storage keys of the source whose objects have been copied. */
  list(sourceKeys: readonly StorageKey[]): Promise<ReadonlySet<StorageKey>>

  /**
   * Records a copy, and puts its leftovers into the trash. If another copy of the same object is recorded already, this
   * copy goes into the trash too. Atomic.
   */
  add(copied: CopiedObject, leftovers: readonly RemovableObject[]): Promise<void>

  /** Puts a copy that is incomplete or damaged into the trash. */
  discard(object: RemovableObject): Promise<void>
}
