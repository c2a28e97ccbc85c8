/**
 * The name of a stored object. It is random, is created once, and is never used again; it does not depend on the
 * digest. So a removal of old bytes that comes late, or twice, can never remove new bytes.
 */
export type StorageKey = string & { readonly __brand: 'StorageKey' }

/** A part of an object. Both ends are included, as in the HTTP header `Range`. */
export interface ByteRange {
  readonly first: number
  readonly last: number
}

/**
 * Bytes for a client. A `Blob` if the kernel can send them (a file), otherwise a stream. A chunk of the stream is valid until
 * the next one is requested.
 */
export type OutgoingBytes = Blob | ReadableStream<Uint8Array>

/** What a store needs to continue an unfinished object on any machine. */
export interface UnfinishedObject {
  /** The size of the bytes that the last `flush` made durable. */
  readonly sizeBytes: number
  /** For the store that wrote it only, such as the upload id and the parts of an S3 multipart upload. */
  readonly notes: string | undefined
  /** All of the bytes, if they are few: they are in the row of the upload, and the store has no object. */
  readonly inlineBytes?: Uint8Array | undefined
}

/** What `remove` needs to remove an object in any state. */
export interface RemovableObject {
  readonly storageKey: StorageKey
  /** The notes of the last `flush`. */
  readonly notes: string | undefined
}

/** An object that is complete and durable. It never changes again. */
export interface CompleteObject {
  /**
   * The key of the object. It is the key of `openWriter`, or a new key that no other writer gets. A store whose writes
   * can arrive late needs a new key, so that a late write of an aborted writer cannot change acknowledged bytes.
   */
  readonly key: StorageKey
  /** False if the result of the completion is unknown. The caller must then read and verify the bytes. */
  readonly isCertain: boolean
  /** Objects that are no longer needed. They go to the trash in the transaction that records `key`. */
  readonly leftovers: readonly RemovableObject[]
  /** All of the bytes, if they are few: they go into the row of the blob, and the store has no object. */
  readonly inlineBytes?: Uint8Array | undefined
}

/** An object of the store that may belong to no row. */
export interface OrphanedObject extends RemovableObject {
  /** The key of `openWriter`. If an unfinished upload has this key, it may need the object. */
  readonly openedFor: StorageKey
}

/**
 * Stores bytes under keys. It knows nothing of digests, repositories or rights.
 *
 * A method rejects with `Unavailable` if the store cannot do it now, with the cause inside. Two writers for one key are
 * possible only if one has lost its turn; the metadata store decides whose bytes count (see `Uploads`).
 */
export interface BlobStore {
  /**
   * Opens the object to append at `from.sizeBytes`. Creates it if that is 0. Drops bytes behind that position, which an
   * earlier writer wrote but did not flush. Rejects with `Spoiled` if flushed bytes are missing.
   */
  openWriter(key: StorageKey, from: UnfinishedObject): Promise<BlobWriter>

  /**
   * The bytes of a complete object, or a part of them, for a client. Undefined if there is no object, or if its size is
   * not `sizeBytes`: then the bytes are lost. Before it returns undefined, the store checks that it still contains the
   * owner name that `claim` found or wrote. If not (for example, the disk is not mounted), it rejects with
   * `Unavailable`.
   */
  open(key: StorageKey, sizeBytes: number, range?: ByteRange): Promise<OutgoingBytes | undefined>

  /**
   * All bytes of a complete object, for this process, which reads them as fast as they arrive. Undefined as for `open`.
   * The iteration too rejects with `Unavailable`. The caller must read to the end or call `return`.
   */
  read(key: StorageKey, sizeBytes: number): Promise<AsyncIterable<Uint8Array> | undefined>

  /** Whether there is a complete object of `sizeBytes` bytes. False exactly when `open` returns undefined. */
  has(key: StorageKey, sizeBytes: number): Promise<boolean>

  /**
   * Removes an object in any state, complete or not. With the key of an upload, removes everything that its writers
   * left. Idempotent: to remove an object that does not exist is a success.
   */
  remove(key: StorageKey, notes: string | undefined): Promise<void>

  /**
   * A URL under which any client can download the bytes from the store itself, for so many seconds. Undefined if the
   * store has no such URLs.
   */
  presignDownload(key: StorageKey, lifetimeSeconds: number): string | undefined

  /**
   * All objects that are at least `ageMs` old by the clock of the store, in pages, complete or not. The caller finds
   * out which of them belong to no row.
   */
  listOlderThan(ageMs: number): AsyncIterable<readonly OrphanedObject[]>

  /**
   * Writes the owner's name into the store if it has no name and `mayBeNew` is true, or if its name is `formerOwner`.
   * Returns the name that is in the store afterwards. The name keeps two registries from sharing one store, where each
   * would remove the other's objects as orphaned. The store object remembers the name, for `open`.
   */
  claim(owner: string, as: { readonly mayBeNew: boolean; readonly formerOwner?: string }): Promise<string | undefined>

  /** Resolves if the store can be read and written now. */
  probe(): Promise<void>

  /** Closes connections and stops timers. */
  close(): Promise<void>
}

/**
 * Appends to one object, from `openWriter` to `close`. Methods run one at a time. They reject with `Spoiled` if the
 * object can never become complete, and with `Unavailable` if a later attempt may succeed.
 */
export interface BlobWriter {
  /**
   * Appends a chunk. The chunk belongs to the writer, which may free its memory: the caller must not change it, and can
   * read it only until it calls the writer again. The promise gives backpressure: memory is bounded if the caller
   * awaits it. Rejects with the refusal `disk-low`, and appends nothing of the chunk, if the chunk would use
   * the reserve of a local disk. Earlier chunks can still be flushed then.
   */
  write(chunk: Uint8Array): Promise<void>

  /** Makes all chunks so far durable. Returns what is needed to continue later, also on another machine. */
  flush(): Promise<UnfinishedObject>

  /** Makes the object complete and durable, with its name. Nothing can be appended afterwards. */
  complete(): Promise<CompleteObject>

  /**
   * Drops the bytes since the last `flush`, or since `openWriter`, and frees their space. If the store cannot do so
   * now, the next `openWriter` does. After `complete`, only a caller that knows that no row names the object may call
   * this.
   */
  rollBack(): Promise<void>

  /** Closes files and connections. Can be called at any time and repeatedly. Flushed bytes stay. */
  close(): Promise<void>
}
