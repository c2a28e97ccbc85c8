import { NoSlot } from '../../lib/slots.ts'
import { Spoiled, Unavailable } from '../../oci/errors.ts'
import type {
  BlobStore,
  BlobWriter,
  ByteRange,
  OrphanedObject,
  OutgoingBytes,
  StorageKey,
  UnfinishedObject,
} from '../../ports/blob-store.ts'
import type { DiskSpace } from '../../ports/disk-space.ts'
import { isUploadKey, ownerObject, parseObjectName, toObjectName, uploadKeyOf } from './object-names.ts'
import { PartBufferPool, type PartPlan, usualPlan } from './part-buffers.ts'
import { S3BlobWriter } from './s3-blob-writer.ts'
import { S3Client, type S3ClientSettings } from './s3-client.ts'
import { toBody } from './s3-request.ts'
import { S3Error } from './s3-response.ts'
import { formatNotes, parseNotes, totalBytes } from './upload-state.ts'

export interface S3BlobStoreSettings extends S3ClientSettings {
  readonly prefix: string
  readonly memoryBuffersMax: number
  readonly spoolFolder: string
  /** The disk of that folder, if it has a reserve. */
  readonly disk?: DiskSpace | undefined
  /** Tests use smaller parts. */
  readonly plan?: PartPlan
}

/**
 * Objects up to this size are read completely before the response begins. Then an error of the store can still be
 * answered, the response has a length, and slow readers hold no download slot.
 */
const readWholeMaxBytes = 256 * 1024

/** Longer than a part usually takes to be sent, shorter than clients wait. */
const bufferWaitMs = 5_000

/**
 * Blobs as objects in a bucket. The store relies on this: a PUT or a completion of a multipart upload that S3 has
 * confirmed is durable, and the next GET sees it; an ETag identifies the bytes of a part. It does not rely on: lists
 * that are up to date, an end of requests that have timed out, conditional writes, and the clocks of our machines.
 */
export class S3BlobStore implements BlobStore {
  readonly #client: S3Client
  readonly #prefix: string
  readonly #buffers: PartBufferPool
  /** Work of writers that continues after the responses to their clients. */
  readonly #background = new Set<Promise<unknown>>()
  /** The owner that the store had when it was claimed. */
  #owner: string | undefined

  constructor(settings: S3BlobStoreSettings) {
    this.#client = new S3Client(settings)
    this.#prefix = settings.prefix
    this.#buffers = new PartBufferPool({
      plan: settings.plan ?? usualPlan,
      checksum: settings.checksum,
      memoryBuffersMax: settings.memoryBuffersMax,
      queueMax: settings.queueMax,
      waitMaxMs: bufferWaitMs,
      folder: settings.spoolFolder,
      disk: settings.disk,
    })
  }

  async openWriter(key: StorageKey, from: UnfinishedObject): Promise<BlobWriter> {
    const state = parseNotes(from.sizeBytes === 0 ? undefined : from.notes)
    const storedBytes = totalBytes(state)
    if (storedBytes !== from.sizeBytes)
      throw new Error(`the notes account for ${storedBytes} of ${from.sizeBytes} acknowledged bytes`)
    const runInBackground = (work: Promise<unknown>): void => {
      const running = work.finally(() => this.#background.delete(running))
      this.#background.add(running)
    }
    const needs = { client: this.#client, prefix: this.#prefix, buffers: this.#buffers, runInBackground }
    return new ErrorMappingWriter(new S3BlobWriter(key, needs, state), () => this.#checkOwner())
  }

  open(key: StorageKey, sizeBytes: number, range?: ByteRange): Promise<OutgoingBytes | undefined> {
    return mapErrors(async () => {
      const name = this.#nameOf(key)
      const lengthBytes = range === undefined ? sizeBytes : range.last - range.first + 1
      if (lengthBytes > readWholeMaxBytes) {
        return (await this.#client.open(name, sizeBytes, range)) ?? (await this.#checkOwner())
      }
      const bytes = await this.#client.read(name, sizeBytes, range)
      return bytes ? new Blob([await new Response(bytes).bytes()]) : this.#checkOwner()
    })
  }

  /** A missing object is lost only if the bucket and the prefix are those that were claimed. */
  async #checkOwner(): Promise<undefined> {
    if (this.#owner === undefined) return
    const found = await this.#readOwner()
    if (found === this.#owner) return
    const state = found === undefined ? 'does not exist' : `names ${found}`
    const expected = `it must name this registry, ${this.#owner}`
    throw new Error(`the object ${this.#ownerName} ${state}, but ${expected}: check the bucket and the prefix`)
  }

  async read(key: StorageKey, sizeBytes: number): Promise<AsyncIterable<Uint8Array> | undefined> {
    const bytes = await mapErrors(
      async () => (await this.#client.read(this.#nameOf(key), sizeBytes)) ?? this.#checkOwner(),
    )
    return bytes && mapErrorsOf(bytes)
  }

  has(key: StorageKey, sizeBytes: number): Promise<boolean> {
    return mapErrors(async () => {
      if ((await this.#client.findSize(this.#nameOf(key))) === sizeBytes) return true
      await this.#checkOwner()
      return false
    })
  }

  /** The key of an upload stands for all objects of its writers. If one were a blob, the upload would have a row. */
  async remove(key: StorageKey, notes: string | undefined): Promise<void> {
    const { multipart } = parseNotes(notes)
    await mapErrors(async () => {
      if (multipart !== undefined) await this.#client.abortUpload(this.#nameOf(multipart.key), multipart.uploadId)
      if (isUploadKey(key)) await this.#removeAllOf(key)
      else await this.#client.remove(this.#nameOf(key))
    })
  }

  async #removeAllOf(key: StorageKey): Promise<void> {
    const prefix = this.#nameOf(key)
    for await (const uploads of this.#client.listUploads(prefix)) {
      for (const { name, uploadId } of uploads) await this.#client.abortUpload(name, uploadId)
    }
    for await (const objects of this.#client.listObjects(prefix)) {
      for (const { name } of objects) await this.#client.remove(name)
    }
  }

  presignDownload(key: StorageKey, lifetimeSeconds: number): string | undefined {
    return this.#client.presign(this.#nameOf(key), lifetimeSeconds)
  }

  async *listOlderThan(ageMs: number): AsyncIterable<readonly OrphanedObject[]> {
    const toOrphaned = (name: string, uploadId: string | undefined): OrphanedObject | undefined => {
      const storageKey = parseObjectName(this.#prefix, name)
      return storageKey && { storageKey, openedFor: uploadKeyOf(storageKey), notes: notesOf(storageKey, uploadId) }
    }
    const isOld = (found: { readonly ageMs: number }) => found.ageMs >= ageMs
    for await (const page of mapErrorsOf(this.#client.listUploads(this.#prefix))) {
      yield page
        .filter(isOld)
        .map(({ name, uploadId }) => toOrphaned(name, uploadId))
        .filter((object) => object !== undefined)
    }
    for await (const page of mapErrorsOf(this.#client.listObjects(this.#prefix))) {
      yield page
        .filter(isOld)
        .map(({ name }) => toOrphaned(name, undefined))
        .filter((object) => object !== undefined)
    }
  }

  claim(
    owner: string,
    { mayBeNew, formerOwner }: { readonly mayBeNew: boolean; readonly formerOwner?: string },
  ): Promise<string | undefined> {
    return mapErrors(async () => {
      const known = await this.#readOwner()
      const isOurs = known === undefined ? mayBeNew : known === formerOwner
      if (isOurs) {
        await this.#client.put(this.#ownerName, toBody(Buffer.from(owner)))
      }
      // If two registries claim the store at the same time, the later one owns it, and both see that.
      this.#owner = isOurs ? ((await this.#readOwner()) ?? owner) : known
      return this.#owner
    })
  }

  async #readOwner(): Promise<string | undefined> {
    const sizeBytes = await this.#client.findSize(this.#ownerName)
    const bytes = sizeBytes === undefined ? undefined : await this.#client.read(this.#ownerName, sizeBytes)
    return bytes && new Response(bytes).text()
  }

  get #ownerName(): string {
    return `${this.#prefix}${ownerObject}`
  }

  async probe(): Promise<void> {
    await mapErrors(() => this.#client.probe())
  }

  async close(): Promise<void> {
    await Promise.all(this.#background)
    await this.#client.close()
  }

  #nameOf(key: StorageKey): string {
    return toObjectName(this.#prefix, key)
  }
}

function notesOf(key: StorageKey, uploadId: string | undefined): string | undefined {
  if (uploadId === undefined) return undefined
  return formatNotes({ multipart: { key, uploadId, parts: [] }, tails: [], replaced: [] })
}

/** Maps the errors of a writer to those of the port. An upload is spoiled only if the bucket is the claimed one. */
class ErrorMappingWriter implements BlobWriter {
  readonly #inner: BlobWriter
  readonly #checkOwner: () => Promise<unknown>

  constructor(inner: BlobWriter, checkOwner: () => Promise<unknown>) {
    this.#inner = inner
    this.#checkOwner = checkOwner
  }

  write(chunk: Uint8Array) {
    return mapErrors(() => this.#inner.write(chunk), this.#checkOwner)
  }

  flush() {
    return mapErrors(() => this.#inner.flush(), this.#checkOwner)
  }

  complete() {
    return mapErrors(() => this.#inner.complete(), this.#checkOwner)
  }

  rollBack() {
    return mapErrors(() => this.#inner.rollBack(), this.#checkOwner)
  }

  close() {
    return mapErrors(() => this.#inner.close(), this.#checkOwner)
  }
}

/**
 * S3 will never make an object of these parts: a writer that had lost its turn has replaced one of them, or a rule of the
 * bucket has ended the upload.
 */
const spoiledCodes: ReadonlySet<string> = new Set([
  'InvalidPart',
  'InvalidPartOrder',
  'EntityTooSmall',
  'wrong-size',
  'ended',
])

async function mapErrors<T>(act: () => Promise<T>, confirm?: () => Promise<unknown>): Promise<T> {
  try {
    return await act()
  } catch (error) {
    if (error instanceof S3Error && spoiledCodes.has(error.code)) {
      if (confirm !== undefined) await mapErrors(confirm)
      throw new Spoiled(error.message, { cause: error })
    }
    const cause = error instanceof NoSlot ? new Error('too many requests wait for the S3 store') : error
    throw new Unavailable('blob-store', { cause })
  }
}

async function* mapErrorsOf<T>(items: AsyncIterable<T>): AsyncIterable<T> {
  const iterator = items[Symbol.asyncIterator]()
  try {
    for (;;) {
      const next = await mapErrors(() => iterator.next())
      if (next.done) return
      yield next.value
    }
  } finally {
    // If the caller stops early, the request must not keep its slot.
    await iterator.return?.()
  }
}
