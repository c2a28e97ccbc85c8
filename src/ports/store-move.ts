import type { Digest } from '../oci/digest.ts'
import type { RemovableObject, StorageKey } from './blob-store.ts'
import type { RowId } from './row-id.ts'

// What a move from one pair of stores to another asks of the metadata stores at its two ends, while bytes are copied.

/** A blob of any account. */
export interface MovableBlob {
  readonly id: RowId
  /** The account's name: for people. */
  readonly account: string
  readonly digest: Digest
  readonly sizeBytes: number
  readonly storageKey: StorageKey
}

export interface Amount {
  readonly blobs: number
  readonly bytes: number
}

/** At the end that is moved from. */
export interface MovableBlobs {
  /** Counted when asked for. */
  measure(): Promise<Amount>

  /** In the order of their numbers, after `after`, at most `limit`. A later one can get a lower number. */
  list(after: RowId, limit: number): Promise<MovableBlob[]>

  /** Whether a blob still has this key. */
  has(key: StorageKey): Promise<boolean>
}

/** Bytes that stand in the new blob store already: complete, durable and verified. */
export interface CopiedObject {
  readonly sourceKey: StorageKey
  readonly storageKey: StorageKey
  readonly digest: Digest
  readonly sizeBytes: number
}

/**
 * At the end that is moved to: what was copied so far, so that a move that was killed goes on where it was. The rows that
 * will name these bytes come at the very end, all at once; until then nothing may remove them.
 */
export interface CopiedObjects {
  measure(): Promise<Amount>

  /** Of these keys of the other end, those whose bytes are here. */
  list(sourceKeys: readonly StorageKey[]): Promise<ReadonlySet<StorageKey>>

  /** Notes a copy; what it left behind, or the copy itself if there is another already, goes into the trash. */
  note(copied: CopiedObject, leftovers: readonly RemovableObject[]): Promise<void>

  /** Puts a copy that was not completed, or is not what it should be, into the trash. */
  discard(object: RemovableObject): Promise<void>
}
