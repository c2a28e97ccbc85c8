/**
 * Where a blob's bytes are. Not their digest: a random name that is made once and never used again, so that a late or
 * repeated removal of old bytes can never hit new ones.
 */
export type StorageKey = string & { readonly __brand: 'StorageKey' }

/** A part of an object, both ends included, as `Range` counts. */
export interface ByteRange {
  readonly first: number
  readonly last: number
}

/** Bytes on their way out: a `Blob` where the technology lets the kernel send it (a file), else a stream. */
export type OutgoingBytes = Blob | ReadableStream<Uint8Array>

/** What a store must be told to go on with an unfinished object: how much stands, and its own notes of last time. */
export interface UnfinishedObject {
  readonly sizeBytes: number
  /** Opaque to everybody but the store that wrote it (an S3 store keeps its upload id and part list here). */
  readonly notes: string | undefined
}

/** Holds bytes under keys. Knows nothing of digests, repositories or who may read. */
export interface BlobStore {
  /**
   * Opens the object for appending at `from.sizeBytes`; creates it when that is 0. Bytes that an earlier writer left
   * behind that point, unacknowledged, are dropped. Two writers on one key are kept apart by the metadata store.
   */
  openWriter(key: StorageKey, from: UnfinishedObject): Promise<BlobWriter>

  /**
   * The bytes of a complete object, or of one part of it. `undefined` when there is no such object, or when it is not of
   * `sizeBytes` bytes: the caller was promised that many, and fewer would be a broken answer.
   */
  open(key: StorageKey, sizeBytes: number, range?: ByteRange): Promise<OutgoingBytes | undefined>

  /**
   * Removes an object in whatever state it is, finished or not. Removing what is not there is a success, so that a
   * crash between removal and note-taking can be repaired by removing again.
   */
  remove(key: StorageKey, notes: string | undefined): Promise<void>

  /** Resolves when the store can be written to and read; rejects with `Unavailable` otherwise. */
  probe(): Promise<void>
}

/** One unbroken run of appends to one object. */
export interface BlobWriter {
  /** Appends. The chunk must not be changed afterwards. Awaiting gives backpressure: memory stays bounded. */
  write(chunk: Uint8Array): Promise<void>

  /** Makes all that was written durable, and tells how to go on later, on this machine or another. */
  flush(): Promise<UnfinishedObject>

  /** Declares the object complete and durable under its key, its name included. Nothing can be appended after this. */
  complete(): Promise<void>

  /**
   * Drops what was written since the last `flush`, or since the writer was opened: those bytes count for nobody, and the
   * room that they take may be what others wait for. A store that cannot do it now does it when the object is opened next.
   */
  rewind(): Promise<void>

  /** Lets go of files and sockets. Safe to call at any point and twice; what `flush` acknowledged stays. */
  close(): Promise<void>
}
