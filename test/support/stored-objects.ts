// Objects in a blob store, put there and read back in one line.
import type { BlobStore, OutgoingBytes, StorageKey, UnfinishedObject } from '../../src/ports/blob-store.ts'

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
  bytes: OutgoingBytes | AsyncIterable<Uint8Array> | undefined,
): Promise<Uint8Array | undefined> {
  if (bytes === undefined) return undefined
  const chunks: Uint8Array[] = []
  for await (const chunk of bytes instanceof Blob ? bytes.stream() : bytes) chunks.push(chunk)
  return new Uint8Array(Buffer.concat(chunks))
}

export async function storeWhole(store: BlobStore, bytes: Uint8Array): Promise<StorageKey> {
  const key = freshKey()
  const writer = await store.openWriter(key, emptyObject)
  try {
    await writer.write(bytes)
    return (await writer.complete()).key
  } finally {
    await writer.close()
  }
}
