import { startHash } from '../../lib/hashing.ts'
import type { CompleteObject, StorageKey } from '../../ports/blob-store.ts'
import { freshName, toObjectName } from './object-names.ts'
import type { PartBuffer, PartBufferPool } from './part-buffers.ts'
import type { S3Client } from './s3-client.ts'
import { completeOperation } from './s3-documents.ts'
import { S3Error } from './s3-response.ts'
import type { StoredPart, UploadState } from './upload-state.ts'

/** What a writer uses. */
export interface WriterNeeds {
  readonly client: S3Client
  readonly prefix: string
  readonly buffers: PartBufferPool
  /** For work that continues after the response to the client, and never rejects: the store awaits it when it is closed. */
  runInBackground(work: Promise<unknown>): void
}

type State = NonNullable<UploadState['multipart']>

/** The parts of one object that are sent at the same time. */
const concurrentPartsMax = 2

/** The tag of a part that was found in the object, which an earlier request has completed. */
const foundInObject = ''

/**
 * One multipart upload. It is created with the first part. Numbers and ETags of the parts are kept here and not listed
 * from S3, because its lists may lack recent parts.
 *
 * An unanswered request may have been carried out, now or later. After every such doubt, `complete` and `#uploadPart` look at the
 * object itself, which has a name of this writer alone.
 */
export class MultipartUpload {
  readonly #key: StorageKey
  readonly #needs: WriterNeeds
  #created: Pick<State, 'key' | 'uploadId'> | undefined
  #parts: StoredPart[]
  #sentCount: number
  #error: unknown
  #mayBeComplete = false
  readonly #sending = new Set<Promise<void>>()

  constructor(key: StorageKey, needs: WriterNeeds, state: State | undefined) {
    this.#key = key
    this.#needs = needs
    this.#created = state
    this.#parts = [...(state?.parts ?? [])]
    this.#sentCount = this.#parts.length
  }

  get isCreated(): boolean {
    return this.#created !== undefined
  }

  get nextNumber(): number {
    return this.#sentCount + 1
  }

  /** An error is final for this writer, because it is not known what S3 has of the part. */
  checkError(): void {
    if (this.#error !== undefined) throw this.#error
  }

  /** Starts to send a part, as soon as not too many are being sent. The buffer belongs to the upload from now on. */
  async send(buffer: PartBuffer): Promise<void> {
    this.#sentCount += 1
    const number = this.#sentCount
    try {
      while (this.#sending.size >= concurrentPartsMax) await Promise.race(this.#sending)
      this.checkError()
      this.#created ??= await this.#create()
      this.#start(this.#created, number, buffer)
    } catch (error) {
      this.#error ??= error
      await this.#needs.buffers.close(buffer)
      throw error
    }
  }

  #start(created: Pick<State, 'key' | 'uploadId'>, number: number, buffer: PartBuffer): void {
    const sending = this.#uploadPart(created, number, buffer)
      .finally(() => this.#needs.buffers.close(buffer))
      .catch((error: unknown) => {
        this.#error ??= error
      })
      .finally(() => this.#sending.delete(sending))
    this.#sending.add(sending)
  }

  async #create(): Promise<Pick<State, 'key' | 'uploadId'>> {
    const key = freshName(this.#key)
    return { key, uploadId: await this.#needs.client.createUpload(this.#nameOf(key)) }
  }

  #nameOf(key: StorageKey): string {
    return toObjectName(this.#needs.prefix, key)
  }

  async #uploadPart({ key, uploadId }: Pick<State, 'key' | 'uploadId'>, number: number, buffer: PartBuffer) {
    const { client } = this.#needs
    const name = this.#nameOf(key)
    const { sizeBytes } = buffer
    try {
      const etag = await client.uploadPart(name, uploadId, number, buffer.body())
      this.#parts[number - 1] = { etag, sizeBytes }
    } catch (error) {
      if (!(error instanceof S3Error) || error.code !== 'NoSuchUpload') throw error
      const total = await client.findSize(name)
      if (total === undefined) throw endedError('UploadPart', error)
      if (!(await this.#isInObject(name, total, buffer))) throw error
      this.#parts[number - 1] = { etag: foundInObject, sizeBytes }
    }
  }

  /**
   * The upload was completed by an earlier request, which then failed, so the client sends the end again. A part whose bytes
   * are in the object already needs no request.
   */
  async #isInObject(name: string, total: number, buffer: PartBuffer): Promise<boolean> {
    const last = buffer.startsAt + buffer.sizeBytes - 1
    if (last >= total) return false
    const stored = await this.#needs.client.read(name, total, { first: buffer.startsAt, last })
    if (stored === undefined) return false
    return (await hashOf(stored)) === (await hashOf(new Blob([buffer.body().bytes]).stream()))
  }

  /** Waits until all parts have been sent, and rejects if one could not be stored. */
  async drain(): Promise<void> {
    await this.settle()
    this.checkError()
  }

  /** Waits until no part is being sent any more. */
  async settle(): Promise<void> {
    await Promise.all(this.#sending)
  }

  state(): State | undefined {
    return this.#created && { ...this.#created, parts: [...this.#parts] }
  }

  /**
   * Makes the object of its parts. `isCertain` is false if S3 did not confirm it: then an object of the right name and
   * size exists, and the caller must read its bytes.
   */
  async complete(sizeBytes: number): Promise<Pick<CompleteObject, 'key' | 'isCertain'>> {
    await this.drain()
    if (this.#created === undefined) throw new Error('a multipart upload without parts cannot be completed')
    const { key } = this.#created
    this.#mayBeComplete = true
    const { client } = this.#needs
    let wasInDoubt = false
    for (let tries = 1; ; tries += 1) {
      const error = await this.#tryComplete(this.#created, sizeBytes)
      if (error === undefined) {
        // A HEAD that does not see the object yet is no end of the upload.
        if (await this.#hasObject(key, sizeBytes)) return { key, isCertain: true }
        throw new S3Error(completeOperation, { code: 'absent', text: 'no object exists afterwards' })
      }
      const isGone = error.code === 'NoSuchUpload'
      const isInDoubt = isGone || error.isTransient || error.code === 'malformed'
      if ((isInDoubt || wasInDoubt) && (await this.#hasObject(key, sizeBytes))) return { key, isCertain: false }
      // After a doubt, an earlier attempt may have ended the upload without having finished the object.
      if (isGone && !wasInDoubt) throw this.#wasFoundInObject ? error : endedError(completeOperation, error)
      wasInDoubt ||= isInDoubt
      if (!isInDoubt || !(await client.pause(tries, error))) throw error
    }
  }

  async #tryComplete({ key, uploadId }: Pick<State, 'key' | 'uploadId'>, sizeBytes: number) {
    // There is no tag to complete with, and no upload.
    if (this.#wasFoundInObject) return new S3Error(completeOperation, { code: 'NoSuchUpload' })
    const tags = this.#parts.map(({ etag }) => etag)
    try {
      await this.#needs.client.completeUpload(this.#nameOf(key), uploadId, tags, sizeBytes)
      return undefined
    } catch (error) {
      if (error instanceof S3Error) return error
      throw error
    }
  }

  get #wasFoundInObject(): boolean {
    return this.#parts.some(({ etag }) => etag === foundInObject)
  }

  async #hasObject(key: StorageKey, sizeBytes: number): Promise<boolean> {
    const found = await this.#needs.client.findSize(this.#nameOf(key))
    if (found === undefined || found === sizeBytes) return found === sizeBytes
    const text = `the object has ${found} bytes instead of ${sizeBytes}`
    throw new S3Error(completeOperation, { code: 'wrong-size', text })
  }

  /** Goes back to an earlier state. Later parts are replaced when they are sent again. */
  async rollBack(to: State | undefined): Promise<void> {
    await this.settle()
    if (to === undefined && this.#created !== undefined) {
      const { client } = this.#needs
      const name = this.#nameOf(this.#created.key)
      // The sweep finds what cannot be removed now.
      await client.abortUpload(name, this.#created.uploadId).catch(() => undefined)
      if (this.#mayBeComplete) await client.remove(name).catch(() => undefined)
    }
    this.#mayBeComplete = false
    this.#created = to
    this.#parts = [...(to?.parts ?? [])]
    this.#sentCount = this.#parts.length
    this.#error = undefined
  }
}

/** The upload existed once, and neither it nor its object exists now: the store or a rule of the bucket has removed it. */
function endedError(operation: string, cause: S3Error): S3Error {
  return new S3Error(operation, { code: 'ended', text: 'neither the upload nor its object exists', cause })
}

async function hashOf(bytes: AsyncIterable<Uint8Array>): Promise<string> {
  const hash = startHash('sha256')
  for await (const chunk of bytes) hash.update(chunk)
  return hash.hex()
}
