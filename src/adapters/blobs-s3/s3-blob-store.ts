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
import { type PartPlan, usualPlan } from './part-plan.ts'
import { PieceRoom } from './piece-room.ts'
import { S3BlobWriter } from './s3-blob-writer.ts'
import { S3Client, type S3ClientSettings } from './s3-client.ts'
import { S3Fault } from './s3-fault.ts'
import { readNotes, totalBytes, type UploadNotes, writeNotes } from './upload-notes.ts'

export interface S3BlobStoreSettings extends S3ClientSettings {
  readonly prefix: string
  readonly piecesMax: number
  readonly spoolFolder: string
  /** The disk that this folder is on, if it has a reserve. */
  readonly disk?: DiskSpace | undefined
  /** For tests, which have no terabytes. */
  readonly plan?: PartPlan
}

/**
 * What is no longer is read before it is given out: a store that fails is told so, the answer can name its length, and it is
 * never kept waiting by readers that hold the places of downloads.
 */
const wholeMaxBytes = 256 * 1024

/** Longer than a piece travels, shorter than a client's patience. */
const placeWaitMs = 5_000

/**
 * Objects in a bucket; `object-names.ts` draws their names. What S3 is trusted with: a PUT or a complete multipart upload
 * that was answered is durable and seen by the next GET; a part is what its ETag says. What it is not trusted with: lists
 * that are up to date, requests that end when we stop waiting, conditional writes, and the clocks of our machines.
 */
export class S3BlobStore implements BlobStore {
  readonly #client: S3Client
  readonly #prefix: string
  readonly #room: PieceRoom
  /** What writers have left running behind their clients' answers. */
  readonly #running = new Set<Promise<unknown>>()
  /** The name that stood in the store when it was claimed. */
  #owner: string | undefined

  constructor(settings: S3BlobStoreSettings) {
    this.#client = new S3Client(settings)
    this.#prefix = settings.prefix
    this.#room = new PieceRoom({
      plan: settings.plan ?? usualPlan,
      checksum: settings.checksum,
      piecesMax: settings.piecesMax,
      queueMax: settings.queueMax,
      waitMaxMs: placeWaitMs,
      folder: settings.spoolFolder,
      disk: settings.disk,
    })
  }

  async openWriter(key: StorageKey, from: UnfinishedObject): Promise<BlobWriter> {
    const notes = readNotes(from.sizeBytes === 0 ? undefined : from.notes)
    const stands = totalBytes(notes)
    if (stands !== from.sizeBytes)
      throw new Error(`the notes tell of ${stands} of ${from.sizeBytes} acknowledged bytes`)
    const letRun = (work: Promise<unknown>): void => {
      const running = work.finally(() => this.#running.delete(running))
      this.#running.add(running)
    }
    const needs = { client: this.#client, prefix: this.#prefix, room: this.#room, letRun }
    return new TroubledWriter(new S3BlobWriter(key, needs, notes), () => this.#checkOwner())
  }

  open(key: StorageKey, sizeBytes: number, range?: ByteRange): Promise<OutgoingBytes | undefined> {
    return trouble(async () => {
      const name = this.#nameOf(key)
      const lengthBytes = range === undefined ? sizeBytes : range.last - range.first + 1
      if (lengthBytes > wholeMaxBytes) {
        return (await this.#client.open(name, sizeBytes, range)) ?? (await this.#checkOwner())
      }
      const bytes = await this.#client.read(name, sizeBytes, range)
      return bytes ? new Blob([await new Response(bytes).bytes()]) : this.#checkOwner()
    })
  }

  /** What is missing is lost only if this is the part of a bucket that was claimed, and not another one. */
  async #checkOwner(): Promise<undefined> {
    if (this.#owner === undefined) return
    const found = await this.#readOwner()
    if (found === this.#owner) return
    const says = found === undefined ? 'there is no object' : `${found} stands in the object`
    throw new Error(`${says} ${this.#ownerName}, which must name ${this.#owner}: is it the right bucket?`)
  }

  async read(key: StorageKey, sizeBytes: number): Promise<AsyncIterable<Uint8Array> | undefined> {
    const bytes = await trouble(
      async () => (await this.#client.read(this.#nameOf(key), sizeBytes)) ?? this.#checkOwner(),
    )
    return bytes && troubled(bytes)
  }

  has(key: StorageKey, sizeBytes: number): Promise<boolean> {
    return trouble(async () => {
      if ((await this.#client.sizeOf(this.#nameOf(key))) === sizeBytes) return true
      await this.#checkOwner()
      return false
    })
  }

  /** An upload's key stands for all that its writers have made: no blob has a name of theirs, or it would not be here. */
  async remove(key: StorageKey, notes: string | undefined): Promise<void> {
    const { multipart } = readNotes(notes)
    await trouble(async () => {
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
    const toStray = (name: string, uploadId: string | undefined): OrphanedObject | undefined => {
      const storageKey = parseObjectName(this.#prefix, name)
      return storageKey && { storageKey, openedFor: uploadKeyOf(storageKey), notes: notesOf(storageKey, uploadId) }
    }
    const isOld = (found: { readonly ageMs: number }) => found.ageMs >= ageMs
    for await (const page of troubled(this.#client.listUploads(this.#prefix))) {
      yield page
        .filter(isOld)
        .map(({ name, uploadId }) => toStray(name, uploadId))
        .filter((stray) => stray !== undefined)
    }
    for await (const page of troubled(this.#client.listObjects(this.#prefix))) {
      yield page
        .filter(isOld)
        .map(({ name }) => toStray(name, undefined))
        .filter((stray) => stray !== undefined)
    }
  }

  claim(
    owner: string,
    { mayBeNew, formerOwner }: { readonly mayBeNew: boolean; readonly formerOwner?: string },
  ): Promise<string | undefined> {
    return trouble(async () => {
      const known = await this.#readOwner()
      const isOurs = known === undefined ? mayBeNew : known === formerOwner
      if (isOurs) {
        const bytes = new TextEncoder().encode(owner)
        await this.#client.put(this.#ownerName, { bytes, sha256: undefined, crc32: undefined })
      }
      // Of two that come at once, the later one stands, for both.
      this.#owner = isOurs ? ((await this.#readOwner()) ?? owner) : known
      return this.#owner
    })
  }

  async #readOwner(): Promise<string | undefined> {
    const sizeBytes = await this.#client.sizeOf(this.#ownerName)
    const bytes = sizeBytes === undefined ? undefined : await this.#client.read(this.#ownerName, sizeBytes)
    return bytes && new Response(bytes).text()
  }

  get #ownerName(): string {
    return `${this.#prefix}${ownerObject}`
  }

  async probe(): Promise<void> {
    await trouble(() => this.#client.probe())
  }

  async close(): Promise<void> {
    await Promise.all(this.#running)
    await this.#client.close()
  }

  #nameOf(key: StorageKey): string {
    return toObjectName(this.#prefix, key)
  }
}

function notesOf(key: StorageKey, uploadId: string | undefined): string | undefined {
  if (uploadId === undefined) return undefined
  const notes: UploadNotes = { multipart: { key, uploadId, parts: [] }, tails: [], replaced: [] }
  return writeNotes(notes)
}

/** The writer's faults as the port tells them. In another bucket than the one that was claimed, nothing is spoiled. */
class TroubledWriter implements BlobWriter {
  readonly #inner: BlobWriter
  readonly #checkOwner: () => Promise<unknown>

  constructor(inner: BlobWriter, checkOwner: () => Promise<unknown>) {
    this.#inner = inner
    this.#checkOwner = checkOwner
  }

  write(chunk: Uint8Array) {
    return trouble(() => this.#inner.write(chunk), this.#checkOwner)
  }

  flush() {
    return trouble(() => this.#inner.flush(), this.#checkOwner)
  }

  complete() {
    return trouble(() => this.#inner.complete(), this.#checkOwner)
  }

  rollBack() {
    return trouble(() => this.#inner.rollBack(), this.#checkOwner)
  }

  close() {
    return trouble(() => this.#inner.close(), this.#checkOwner)
  }
}

/**
 * S3 will never make an object of these parts: one was replaced by a writer that had lost its turn, or the upload was ended
 * behind our back, as a rule of the bucket may do.
 */
const spoiled: ReadonlySet<string> = new Set([
  'InvalidPart',
  'InvalidPartOrder',
  'EntityTooSmall',
  'wrong-size',
  'ended',
])

async function trouble<T>(act: () => Promise<T>, confirm?: () => Promise<unknown>): Promise<T> {
  try {
    return await act()
  } catch (error) {
    if (error instanceof S3Fault && spoiled.has(error.code)) {
      if (confirm !== undefined) await trouble(confirm)
      throw new Spoiled(error.message, { cause: error })
    }
    const cause = error instanceof NoSlot ? new Error('too many wait for the S3 store') : error
    throw new Unavailable('the blob store', { cause })
  }
}

async function* troubled<T>(items: AsyncIterable<T>): AsyncIterable<T> {
  const iterator = items[Symbol.asyncIterator]()
  try {
    for (;;) {
      const next = await trouble(() => iterator.next())
      if (next.done) return
      yield next.value
    }
  } finally {
    // Whoever stops in the middle needs the rest no more: a request that runs on would keep its slot.
    await iterator.return?.()
  }
}
