// Objects in a blob store, put there and read back in one line.
import type {
  BlobStore,
  CompleteObject,
  OutgoingBytes,
  StorageKey,
  UnfinishedObject,
} from '../../../src/ports/blob-store.ts'

export interface OpenedBlobStore {
  readonly store: BlobStore
  /** The same objects through a store that was opened anew, as after a restart. */
  reopen(): Promise<BlobStore>
}

export const emptyObject: UnfinishedObject = { sizeBytes: 0, notes: undefined }

export function freshKey(): StorageKey {
  return Bun.randomUUIDv7() as StorageKey
}

export async function readAll(
  bytes: OutgoingBytes | Uint8Array | AsyncIterable<Uint8Array> | undefined,
): Promise<Uint8Array | undefined> {
  if (bytes === undefined || bytes instanceof Uint8Array) return bytes
  const chunks: Uint8Array[] = []
  for await (const chunk of bytes instanceof Blob ? bytes.stream() : bytes) chunks.push(new Uint8Array(chunk))
  return new Uint8Array(Buffer.concat(chunks))
}

/** One writer's life: what it is given, and a pause. */
export async function append(
  store: BlobStore,
  key: StorageKey,
  from: UnfinishedObject,
  bytes: Uint8Array,
): Promise<UnfinishedObject> {
  const writer = await store.openWriter(key, from)
  try {
    // A copy, because a writer may free the memory of what it gets.
    await writer.write(bytes.slice())
    return await writer.flush()
  } finally {
    await writer.close()
  }
}

/** The life of the last one. */
export async function complete(
  store: BlobStore,
  key: StorageKey,
  from: UnfinishedObject,
  last: Uint8Array = new Uint8Array(),
): Promise<CompleteObject> {
  const writer = await store.openWriter(key, from)
  try {
    await writer.write(last.slice())
    return await writer.complete()
  } finally {
    await writer.close()
  }
}

export async function storeWhole(store: BlobStore, bytes: Uint8Array): Promise<StorageKey> {
  return (await complete(store, freshKey(), emptyObject, bytes)).key
}
