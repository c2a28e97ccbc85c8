import { type RunningHash, startHash } from '../lib/hashing.ts'
import type { Digest, DigestAlgorithm } from '../oci/digest.ts'
import { RegistryRefusal } from '../oci/errors.ts'
import type { BlobStore, BlobWriter } from '../ports/blob-store.ts'
import type { Clock } from '../ports/clock.ts'
import type { MetadataStore } from '../ports/metadata-store.ts'
import type { Upload } from '../ports/uploads.ts'
import type { RegistrySettings } from './settings.ts'

export interface WritingNeeds {
  readonly blobs: Pick<BlobStore, 'openWriter'>
  readonly metadata: Pick<MetadataStore, 'uploads'>
  readonly clock: Pick<Clock, 'steadyNow'>
  readonly settings: Pick<RegistrySettings, 'blobBytesMax'>
}

/** Bytes on their way in, and what their sender said about them. */
export interface IncomingChunk {
  readonly body: AsyncIterable<Uint8Array> & { cancel(reason: Error): void }
  /** Where the sender believes to be in the blob (`Content-Range`). */
  readonly first: number | undefined
  /** How many bytes the sender announced, if it did. */
  readonly lengthBytes: number | undefined
}

/**
 * A writer holds its turn for this long, and asks for more time well before the end. The store's clock says when it is
 * over; here only the distance counts, so that nobody who sets this machine's clock can make a writer late.
 */
export const turnMs = 30_000

/** One turn at an upload: the bytes go to the store and through the hash in the same pass. */
export class WritingTurn {
  readonly upload: Upload
  readonly #needs: WritingNeeds
  readonly #writer: BlobWriter
  readonly #hash: RunningHash | undefined
  #sizeBytes: number
  #keepTurnAt: number

  private constructor(needs: WritingNeeds, upload: Upload, writer: BlobWriter, hash: RunningHash | undefined) {
    this.#needs = needs
    this.upload = upload
    this.#writer = writer
    this.#hash = hash
    this.#sizeBytes = upload.object.sizeBytes
    this.#keepTurnAt = needs.clock.steadyNow() + turnMs / 3
  }

  /** Goes on with `hash` if it covers all bytes so far; an upload that is empty yet begins a new one. */
  static async begin(
    needs: WritingNeeds,
    upload: Upload,
    hash: RunningHash | undefined,
    algorithm: DigestAlgorithm,
  ): Promise<WritingTurn> {
    const isEmpty = upload.object.sizeBytes === 0
    const running = isEmpty && hash?.algorithm !== algorithm ? startHash(algorithm) : hash
    return new WritingTurn(needs, upload, await needs.blobs.openWriter(upload.storageKey, upload.object), running)
  }

  get sizeBytes(): number {
    return this.#sizeBytes
  }

  /** The hash of all bytes of the upload, unless another process wrote some of them. */
  get hash(): RunningHash | undefined {
    return this.#hash
  }

  /** For whoever goes on: the hash of all bytes so far, in the algorithm that nearly everybody closes with. */
  digestSoFar(): Digest | undefined {
    return this.#hash?.algorithm === 'sha256' ? (`sha256:${this.#hash.hex()}` as Digest) : undefined
  }

  get writer(): BlobWriter {
    return this.#writer
  }

  /** Takes in the whole body, or as much of it as came. */
  async receive(chunk: IncomingChunk, onProgress: () => void): Promise<void> {
    this.#checkRoomFor(chunk.lengthBytes ?? 0)
    const before = this.#sizeBytes
    for await (const bytes of chunk.body) {
      this.#checkRoomFor(bytes.length)
      // First the writer: a chunk that it refuses must be in neither the hash nor the size.
      await this.#writer.write(bytes)
      this.#hash?.update(bytes)
      this.#sizeBytes += bytes.length
      onProgress()
      if (this.#needs.clock.steadyNow() >= this.#keepTurnAt) await this.#keepTurn()
    }
    // A chunk that is not as long as it said must never be appended silently.
    if (chunk.lengthBytes !== undefined && chunk.lengthBytes !== this.#sizeBytes - before) {
      throw new RegistryRefusal('content-length-mismatch', {
        announced: chunk.lengthBytes,
        received: this.#sizeBytes - before,
      })
    }
  }

  #checkRoomFor(bytes: number): void {
    const max = this.#needs.settings.blobBytesMax
    if (this.#sizeBytes + bytes > max) throw new RegistryRefusal('blob-too-large', { max })
  }

  async #keepTurn(): Promise<void> {
    if (!(await this.#needs.metadata.uploads.keepTurn(this.upload, turnMs))) {
      throw new RegistryRefusal('upload-unknown', { id: this.upload.id })
    }
    this.#keepTurnAt = this.#needs.clock.steadyNow() + turnMs / 3
  }
}
