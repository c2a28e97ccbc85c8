import { Spoiled } from '../../../src/oci/errors.ts'
import type {
  BlobStore,
  BlobWriter,
  ByteRange,
  CompleteObject,
  OrphanedObject,
  OutgoingBytes,
  StorageKey,
  UnfinishedObject,
} from '../../../src/ports/blob-store.ts'

/** Objects in memory: for tests, and for a registry without durable data. Its guarantees are the same except durability. */
export class MemoryBlobStore implements BlobStore {
  readonly #objects = new Map<StorageKey, Uint8Array>()
  #owner: string | undefined

  async openWriter(key: StorageKey, from: UnfinishedObject): Promise<BlobWriter> {
    const stands = this.#objects.get(key) ?? new Uint8Array()
    if (stands.length < from.sizeBytes) throw new Spoiled('fewer bytes than were acknowledged')
    this.#objects.set(key, stands.slice(0, from.sizeBytes))
    return new MemoryBlobWriter(this.#objects, key)
  }

  async open(key: StorageKey, sizeBytes: number, range?: ByteRange): Promise<OutgoingBytes | undefined> {
    const bytes = this.#objects.get(key)
    if (bytes === undefined || bytes.length !== sizeBytes) return undefined
    const part = range === undefined ? bytes : bytes.slice(range.first, range.last + 1)
    return new Blob([part.slice()])
  }

  async read(key: StorageKey, sizeBytes: number): Promise<AsyncIterable<Uint8Array> | undefined> {
    const bytes = this.#objects.get(key)
    return bytes === undefined || bytes.length !== sizeBytes ? undefined : new Blob([bytes.slice()]).stream()
  }

  async has(key: StorageKey, sizeBytes: number): Promise<boolean> {
    return this.#objects.get(key)?.length === sizeBytes
  }

  async remove(key: StorageKey): Promise<void> {
    this.#objects.delete(key)
  }

  presignDownload(): undefined {
    return undefined
  }

  /** Memory keeps no ages: everything counts as old enough. */
  async *listOlderThan(): AsyncIterable<readonly OrphanedObject[]> {
    yield [...this.#objects.keys()].map((key) => ({ storageKey: key, openedFor: key, notes: undefined }))
  }

  async claim(
    owner: string,
    { mayBeNew, formerOwner }: { readonly mayBeNew: boolean; readonly formerOwner?: string },
  ): Promise<string | undefined> {
    if (this.#owner === undefined ? mayBeNew : this.#owner === formerOwner) this.#owner = owner
    return this.#owner
  }

  async close(): Promise<void> {
    // Nothing is held.
  }

  async probe(): Promise<void> {
    // Memory is always there.
  }
}

class MemoryBlobWriter implements BlobWriter {
  readonly #objects: Map<StorageKey, Uint8Array>
  readonly #key: StorageKey
  #chunks: Uint8Array[]

  constructor(objects: Map<StorageKey, Uint8Array>, key: StorageKey) {
    this.#objects = objects
    this.#key = key
    this.#chunks = [objects.get(key) ?? new Uint8Array()]
  }

  async write(chunk: Uint8Array): Promise<void> {
    this.#chunks.push(chunk)
  }

  async flush(): Promise<UnfinishedObject> {
    const bytes = new Uint8Array(Buffer.concat(this.#chunks))
    this.#chunks = [bytes]
    this.#objects.set(this.#key, bytes)
    return { sizeBytes: bytes.length, notes: undefined }
  }

  async complete(): Promise<CompleteObject> {
    await this.flush()
    return { key: this.#key, isCertain: true, leftovers: [] }
  }

  async rollBack(): Promise<void> {
    this.#chunks = [this.#objects.get(this.#key) ?? new Uint8Array()]
  }

  async close(): Promise<void> {
    this.#chunks = []
  }
}
