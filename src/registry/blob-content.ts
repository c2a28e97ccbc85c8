import { andThen } from '../lib/and-then.ts'
import { RegistryRefusal } from '../oci/errors.ts'
import type { Awaitable } from '../ports/awaitable.ts'
import type {
  BlobStore,
  BlobWriter,
  ByteRange,
  CompleteObject,
  OutgoingBytes,
  StorageKey,
  UnfinishedObject,
} from '../ports/blob-store.ts'
import type { BlobRow, LinkedBlob } from '../ports/blobs.ts'
import type { Clock } from '../ports/clock.ts'
import type { DiskSpace } from '../ports/disk-space.ts'
import type { MetadataStore } from '../ports/metadata-store.ts'
import type { Upload } from '../ports/uploads.ts'
import type { RegistrySettings } from './settings.ts'

// The bytes of a blob, and of an unfinished upload, are in one of two places. If there are at most `inlineBytesMax` of
// them, they are inline: in the row of the blob or of the upload. Otherwise they are an object in the blob store. Only
// this file chooses between the two. docs/decisions/0027-small-blobs.md explains why.

interface ReadNeeds {
  readonly blobs: Pick<BlobStore, 'open'>
  readonly metadata: { readonly blobs: Pick<MetadataStore['blobs'], 'findInlineBytes'> }
}

/** All bytes of the blob, or a part of them. Undefined if they are lost, or the row has changed since it was read. */
export function openContent(
  { blobs, metadata }: ReadNeeds,
  blob: LinkedBlob,
  range: ByteRange | undefined,
): Awaitable<OutgoingBytes | Uint8Array | undefined> {
  if (!blob.isInline) return blobs.open(blob.storageKey, blob.sizeBytes, range)
  const found = metadata.blobs.findInlineBytes(blob)
  return range === undefined ? found : andThen(found, (bytes) => bytes?.subarray(range.first, range.last + 1))
}

/** Whether the bytes of the blob are still there. Inline bytes are there as long as their row. */
export async function hasContent(
  { blobs }: { readonly blobs: Pick<BlobStore, 'has'> },
  { isInline, storageKey, sizeBytes }: BlobRow,
): Promise<boolean> {
  return isInline || blobs.has(storageKey, sizeBytes)
}

export interface WriteNeeds {
  readonly blobs: Pick<BlobStore, 'openWriter'>
  readonly clock: Pick<Clock, 'freshId'>
  readonly disk: Pick<DiskSpace, 'isLow'>
  readonly settings: Pick<RegistrySettings, 'inlineBytesMax'>
}

/** Whether so many bytes, which are all bytes of a blob, become inline. */
export function becomesInline({ inlineBytesMax }: WriteNeeds['settings'], sizeBytes: number | undefined): boolean {
  return inlineBytesMax > 0 && sizeBytes !== undefined && sizeBytes <= inlineBytesMax
}

/** Opens the upload to append to it. An upload that has an object keeps it. */
export async function openContentWriter(needs: WriteNeeds, { storageKey, object }: Upload): Promise<BlobWriter> {
  const isEmpty = object.sizeBytes === 0 && object.notes === undefined
  const isInline = object.inlineBytes !== undefined || (isEmpty && needs.settings.inlineBytesMax > 0)
  if (!isInline) return needs.blobs.openWriter(storageKey, object)
  return new InlineWriter(needs, storageKey, object.inlineBytes)
}

/**
 * Keeps the bytes in memory until there are more than `inlineBytesMax`. From then on it is a writer of the blob store,
 * under the key of the upload.
 */
class InlineWriter implements BlobWriter {
  readonly #needs: WriteNeeds
  readonly #key: StorageKey
  readonly #durableBytes: Uint8Array
  /** The inline bytes, and free space behind them. */
  #buffer: Uint8Array
  #sizeBytes: number
  #object: BlobWriter | undefined

  constructor(needs: WriteNeeds, key: StorageKey, durableBytes: Uint8Array = new Uint8Array()) {
    this.#needs = needs
    this.#key = key
    this.#durableBytes = durableBytes
    this.#buffer = durableBytes
    this.#sizeBytes = durableBytes.length
  }

  async write(chunk: Uint8Array): Promise<void> {
    const sizeBytes = this.#sizeBytes + chunk.length
    if (this.#object === undefined && sizeBytes > this.#needs.settings.inlineBytesMax && chunk.length > 0) {
      this.#object = await this.#openObject()
    }
    if (this.#object !== undefined) return this.#object.write(chunk)
    if (this.#needs.disk.isLow()) throw new RegistryRefusal('disk-low')
    if (sizeBytes > this.#buffer.length) this.#buffer = grow(this.#buffer, this.#sizeBytes, sizeBytes)
    this.#buffer.set(chunk, this.#sizeBytes)
    this.#sizeBytes = sizeBytes
  }

  /** Moves the inline bytes to an object. If that fails, they stay inline. */
  async #openObject(): Promise<BlobWriter> {
    const object = await this.#needs.blobs.openWriter(this.#key, { sizeBytes: 0, notes: undefined })
    try {
      // A copy, because the writer may free the chunk. `slice` of a Buffer, which PostgreSQL returns, would not copy.
      await object.write(new Uint8Array(this.#inlineBytes()))
      return object
    } catch (error) {
      await object.rollBack().catch(() => undefined)
      await object.close().catch(() => undefined)
      throw error
    }
  }

  async flush(): Promise<UnfinishedObject> {
    if (this.#object !== undefined) return this.#object.flush()
    return { sizeBytes: this.#sizeBytes, notes: undefined, inlineBytes: this.#inlineBytes() }
  }

  /** Inline, under a new key: an earlier writer that was rolled back may have left an object under the old one. */
  async complete(): Promise<CompleteObject> {
    if (this.#object !== undefined) return this.#object.complete()
    const key = this.#needs.clock.freshId() as StorageKey
    const leftovers = [{ storageKey: this.#key, notes: undefined }]
    return { key, isCertain: true, leftovers, inlineBytes: this.#inlineBytes() }
  }

  async rollBack(): Promise<void> {
    this.#buffer = this.#durableBytes
    this.#sizeBytes = this.#durableBytes.length
    await this.#object?.rollBack()
  }

  async close(): Promise<void> {
    await this.#object?.close()
  }

  #inlineBytes(): Uint8Array {
    return this.#buffer.subarray(0, this.#sizeBytes)
  }
}

/** A larger buffer with the same first bytes. At least twice as large, so that many small chunks are copied rarely. */
function grow(buffer: Uint8Array, usedBytes: number, neededBytes: number): Uint8Array {
  const larger = new Uint8Array(Math.max(neededBytes, 2 * usedBytes))
  larger.set(buffer.subarray(0, usedBytes))
  return larger
}
