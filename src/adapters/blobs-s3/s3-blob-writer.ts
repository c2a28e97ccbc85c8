import { freeChunk } from '../../lib/byte-source.ts'
import type { BlobWriter, CompleteObject, StorageKey, UnfinishedObject } from '../../ports/blob-store.ts'
import { MultipartUpload, type WriterNeeds } from './multipart-upload.ts'
import { freshName, toObjectName } from './object-names.ts'
import { isWorthAPart, type PartBuffer, sizeOfPart } from './part-buffers.ts'
import { S3Error } from './s3-response.ts'
import { bytesOf, formatNotes, type Tail, totalBytes, type UploadState } from './upload-state.ts'

type CompletedObject = Pick<CompleteObject, 'key' | 'isCertain'>

/**
 * Appends to one object. Bytes are collected in a part buffer. A full buffer is sent as a part of a multipart upload, while the
 * next one is filled. At a flush, the rest becomes a tail: a separate object. An object without parts is complete as its
 * own tail, so a small layer costs one request.
 *
 * There are few tails: each is more than twice as large as the next. A flush reads and replaces only tails that are not much
 * larger than the new bytes. Otherwise a client that adds single bytes would move megabytes with each request.
 */
export class S3BlobWriter implements BlobWriter {
  readonly #key: StorageKey
  readonly #needs: WriterNeeds
  readonly #upload: MultipartUpload
  /** The state at the last flush, or when the writer was opened. */
  #flushed: UploadState
  /** The stored bytes after the last part. */
  #tails: readonly Tail[]
  /** The bytes after the tails, which are not stored yet. */
  #buffer: PartBuffer | undefined
  #replaced: StorageKey[] = []
  #position: number
  #madeByComplete: StorageKey | undefined
  /** The last chunk. The caller can read it until it calls this writer again. */
  #written: Uint8Array = new Uint8Array()

  constructor(key: StorageKey, needs: WriterNeeds, state: UploadState) {
    this.#key = key
    this.#needs = needs
    this.#flushed = { ...state, replaced: [] }
    this.#tails = state.tails
    this.#position = totalBytes(state)
    this.#upload = new MultipartUpload(key, needs, state.multipart)
    // The state is stored, so the tails that it replaced are not needed any more.
    needs.runInBackground(this.#removeQuietly(state.replaced))
  }

  async write(chunk: Uint8Array): Promise<void> {
    const { buffers } = this.#needs
    freeChunk(this.#written)
    this.#written = chunk
    let rest = chunk
    while (rest.length > 0) {
      this.#upload.checkError()
      const max = sizeOfPart(buffers.plan, this.#upload.nextNumber)
      let buffer = await this.#openBuffer()
      const taken = rest.subarray(0, Math.max(0, max - bytesOf(this.#tails) - buffer.sizeBytes))
      // While the buffer is still small, so that it takes one place in the pool, and few bytes are copied.
      if (!buffers.isUncounted(buffer.sizeBytes + taken.length)) buffer = await this.#gather(this.#tails.length)
      this.#buffer = buffer = await buffers.append(buffer, taken)
      this.#position += taken.length
      rest = rest.subarray(taken.length)
      if (bytesOf(this.#tails) + buffer.sizeBytes >= max) await this.#sendBuffer()
    }
  }

  async #openBuffer(): Promise<PartBuffer> {
    this.#buffer ??= await this.#needs.buffers.open(this.#position, this.#upload.nextNumber)
    return this.#buffer
  }

  /** Puts the bytes of the last `count` tails before those of the buffer. The tails stay until the next state is stored. */
  async #gather(count: number): Promise<PartBuffer> {
    const buffer = await this.#openBuffer()
    if (count === 0) return buffer
    const { buffers, client, prefix } = this.#needs
    const tails = this.#tails.slice(-count)
    const sizeBytes = bytesOf(tails)
    let whole = await buffers.open(buffer.startsAt - sizeBytes, this.#upload.nextNumber)
    try {
      // First the place in the pool, which may take a while; then the requests, which must be read at once.
      whole = await buffers.prepare(whole, sizeBytes)
      for (const tail of tails) {
        const bytes = await client.read(toObjectName(prefix, tail.key), tail.sizeBytes)
        if (bytes === undefined)
          throw new S3Error('GetObject', { code: 'ended', text: 'a tail of the upload is missing' })
        for await (const chunk of bytes) whole = await buffers.append(whole, chunk)
      }
      for await (const chunk of bytesIn(buffer)) whole = await buffers.append(whole, chunk)
    } catch (error) {
      await buffers.close(whole)
      throw error
    }
    this.#buffer = whole
    this.#tails = this.#tails.slice(0, -count)
    this.#replaced.push(...tails.map(({ key }) => key))
    await buffers.close(buffer)
    return whole
  }

  async #sendBuffer(): Promise<void> {
    const buffer = await this.#gather(this.#tails.length)
    this.#buffer = undefined
    await this.#upload.send(buffer)
  }

  async flush(): Promise<UnfinishedObject> {
    const newBytes = this.#buffer?.sizeBytes ?? 0
    if (newBytes > 0) {
      const { plan } = this.#needs.buffers
      const size = bytesOf(this.#tails) + newBytes
      if (this.#upload.isCreated && isWorthAPart(plan, this.#upload.nextNumber, size)) await this.#sendBuffer()
      else await this.#putTail(newBytes)
    }
    await this.#upload.drain()
    this.#flushed = { multipart: this.#upload.state(), tails: this.#tails, replaced: [...this.#replaced] }
    const isEmpty = this.#position === 0
    return { sizeBytes: this.#position, notes: isEmpty ? undefined : formatNotes(this.#flushed) }
  }

  /** Joined with the tails before it that are at most twice as large. So there are never more than about thirty. */
  async #putTail(newBytes: number): Promise<void> {
    let count = 0
    let sizeBytes = newBytes
    for (const tail of this.#tails.toReversed()) {
      if (tail.sizeBytes > 2 * sizeBytes) break
      sizeBytes += tail.sizeBytes
      count += 1
    }
    const key = await this.#put(await this.#gather(count))
    this.#tails = [...this.#tails, { key, sizeBytes }]
  }

  async #put(buffer: PartBuffer): Promise<StorageKey> {
    const key = freshName(this.#key)
    await this.#needs.client.put(toObjectName(this.#needs.prefix, key), buffer.body())
    await this.#discardBuffer()
    return key
  }

  async complete(): Promise<CompleteObject> {
    const { key, isCertain } = this.#upload.isCreated ? await this.#completeParts() : await this.#completeAtOnce()
    const leftovers = [...this.#replaced, ...this.#tails.map((tail) => tail.key).filter((name) => name !== key)]
    return { key, isCertain, leftovers: leftovers.map((storageKey) => ({ storageKey, notes: undefined })) }
  }

  async #completeAtOnce(): Promise<CompletedObject> {
    const [tail, ...more] = this.#tails
    if (tail !== undefined && more.length === 0 && tail.sizeBytes === this.#position) {
      return { key: tail.key, isCertain: true }
    }
    this.#madeByComplete = await this.#put(await this.#gather(this.#tails.length))
    return { key: this.#madeByComplete, isCertain: true }
  }

  async #completeParts(): Promise<CompletedObject> {
    const hasMore = this.#tails.length > 0 || (this.#buffer?.sizeBytes ?? 0) > 0
    if (hasMore) await this.#sendBuffer()
    return this.#upload.complete(this.#position)
  }

  async rollBack(): Promise<void> {
    await this.#discardBuffer()
    await this.#upload.rollBack(this.#flushed.multipart)
    if (this.#madeByComplete !== undefined) await this.#removeQuietly([this.#madeByComplete])
    this.#madeByComplete = undefined
    this.#tails = this.#flushed.tails
    this.#replaced = [...this.#flushed.replaced]
    this.#position = totalBytes(this.#flushed)
  }

  /** Does not wait for parts that are being sent, because a client may wait for its response. */
  async close(): Promise<void> {
    await this.#discardBuffer()
    this.#needs.runInBackground(this.#upload.settle())
  }

  async #discardBuffer(): Promise<void> {
    const buffer = this.#buffer
    this.#buffer = undefined
    if (buffer !== undefined) await this.#needs.buffers.close(buffer)
  }

  /** The sweep finds what cannot be removed now. */
  async #removeQuietly(keys: readonly StorageKey[]): Promise<void> {
    const { client, prefix } = this.#needs
    await Promise.all(keys.map((key) => client.remove(toObjectName(prefix, key)).catch(() => undefined)))
  }
}

function bytesIn(buffer: PartBuffer): AsyncIterable<Uint8Array> {
  return new Blob([buffer.body().bytes]).stream()
}
