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

/** What `remove` is told of an object: its key, and the notes of whoever wrote to it last. */
export interface RemovableObject {
  readonly storageKey: StorageKey
  readonly notes: string | undefined
}

/** An object that is complete, durable, and will not change any more. */
export interface CompleteObject {
  /**
   * Where it is: the key that the writer was opened for, or one made of it that no other writer has ever been given. A
   * store whose writes can arrive late needs the second, so that one that was given up cannot change what was acknowledged.
   */
  readonly key: StorageKey
  /** False: an answer was lost on the way, so the bytes have to be read before anything is believed of them. */
  readonly isCertain: boolean
  /** What was stored on the way and is needed no more: for the trash, together with the row that names the object. */
  readonly leftovers: readonly RemovableObject[]
}

/** Something in the store that an upload which was not finished may have left behind. */
export interface OrphanedObject extends RemovableObject {
  /** The key that the writer was opened for: an upload that still has it may need the object. */
  readonly openedFor: StorageKey
}

/** Holds bytes under keys. Knows nothing of digests, repositories or who may read. */
export interface BlobStore {
  /**
   * Opens the object for appending at `from.sizeBytes`; creates it when that is 0. Bytes that an earlier writer left
   * behind that point, unacknowledged, are dropped. Two writers on one key are kept apart by the metadata store. Rejects with
   * `Spoiled` if acknowledged bytes are lost.
   */
  openWriter(key: StorageKey, from: UnfinishedObject): Promise<BlobWriter>

  /**
   * The bytes of a complete object, or of one part of it. `undefined` when there is no such object, or when it is not of
   * `sizeBytes` bytes: the caller was promised that many, and fewer would be a broken answer. That is said only of a store
   * in which the name of its owner stands (`claim`): where a disk is not mounted, or the bucket is another one, nothing is
   * lost, and the answer is `Unavailable`.
   */
  open(key: StorageKey, sizeBytes: number, range?: ByteRange): Promise<OutgoingBytes | undefined>

  /**
   * All bytes, for ourselves, who take them as fast as they come: clients that read slowly do not keep us waiting. Trouble in
   * their middle is told as `Unavailable`, too. They have to be read to their end, or given up (`return`).
   */
  read(key: StorageKey, sizeBytes: number): Promise<AsyncIterable<Uint8Array> | undefined>

  /**
   * Whether there is a complete object of `sizeBytes` bytes, without reading it. False under the same conditions under which
   * `open` gives nothing: where the store cannot be asked, or is another one, it rejects with `Unavailable`.
   */
  has(key: StorageKey, sizeBytes: number): Promise<boolean>

  /**
   * Removes an object in whatever state it is, finished or not; with the key of an upload, all that its writers left.
   * Removing what is not there is a success, so that a crash between removal and note-taking can be repaired by removing
   * again.
   */
  remove(key: StorageKey, notes: string | undefined): Promise<void>

  /**
   * An address at which the bytes can be had from the store itself for so many seconds, by anybody who knows it; undefined
   * where the store has no such thing.
   */
  presignDownload(key: StorageKey, lifetimeSeconds: number): string | undefined

  /**
   * What has been lying here for at least `ageMs`, by the store's own clock, page by page: all of it, wanted or not. Whether
   * a row names it, the caller has to find out.
   */
  listOlderThan(ageMs: number): AsyncIterable<readonly OrphanedObject[]>

  /**
   * Writes the owner's name into the store if it has none yet and may be new, or has the former owner's; gives the name that
   * stands then. Two registries on one store would take each other's bytes for strays. The store remembers the name, to know
   * later whether it is still there.
   */
  claim(owner: string, as: { readonly mayBeNew: boolean; readonly formerOwner?: string }): Promise<string | undefined>

  /** Resolves when the store can be written to and read; rejects with `Unavailable` otherwise. */
  probe(): Promise<void>

  /** Lets go of connections and timers. */
  close(): Promise<void>
}

/**
 * One unbroken run of appends to one object. Whatever is asked of it rejects with `Spoiled` where the object can never become
 * whole, whatever is tried again, and with `Unavailable` where it may.
 */
export interface BlobWriter {
  /**
   * Appends. The chunk must not be changed afterwards. Awaiting gives backpressure: memory stays bounded. Where the chunk
   * would go into the reserve of a local disk, it rejects with the refusal `disk-low` and takes nothing of the chunk; what
   * was written before can still be flushed.
   */
  write(chunk: Uint8Array): Promise<void>

  /** Makes all that was written durable, and tells how to go on later, on this machine or another. */
  flush(): Promise<UnfinishedObject>

  /**
   * Makes the object complete and durable, its name included. Nothing can be appended after this.
   */
  complete(): Promise<CompleteObject>

  /**
   * Drops what was written since the last `flush`, or since the writer was opened: those bytes count for nobody, and the
   * room that they take may be what others wait for. A store that cannot do it now does it when the object is opened next.
   *
   * After `complete`, only for who is sure that no row names the object.
   */
  rollBack(): Promise<void>

  /** Lets go of files and sockets. Safe to call at any point and twice; what `flush` acknowledged stays. */
  close(): Promise<void>
}
