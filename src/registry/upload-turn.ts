import { type RunningHash, startHash } from '../lib/hashing.ts'
import { algorithmOf, type Digest, type DigestAlgorithm } from '../oci/digest.ts'
import { type LostBytes, RegistryRefusal, Spoiled, Unavailable } from '../oci/errors.ts'
import type { BlobStore, BlobWriter } from '../ports/blob-store.ts'
import type { Clock } from '../ports/clock.ts'
import type { MetadataStore } from '../ports/metadata-store.ts'
import type { Upload, UploadOwner } from '../ports/uploads.ts'
import type { RegistrySettings } from './settings.ts'
import { commitUpload, hashOfStored } from './upload-commit.ts'
import { endingOf, eventOf, type TurnState } from './upload-endings.ts'
import type { UploadWriters, WriterHandle } from './upload-writers.ts'

export interface TurnNeeds {
  readonly blobs: Pick<BlobStore, 'openWriter' | 'read' | 'has'>
  readonly metadata: Pick<MetadataStore, 'uploads' | 'blobs' | 'transaction'>
  readonly clock: Pick<Clock, 'every'>
  readonly writers: UploadWriters
  readonly settings: Pick<RegistrySettings, 'blobBytesMax'>
  /** Is told of lost bytes that were found, for the log. */
  readonly noteLoss?: (lost: LostBytes) => void
}

/** Bytes on their way in, and what their sender said about them. */
export interface IncomingChunk {
  readonly body: AsyncIterable<Uint8Array> & { cancel(reason: Error): void }
  /** The offset of the first byte, from `Content-Range`. */
  readonly first: number | undefined
  /** How many bytes the sender announced, if it did. */
  readonly lengthBytes: number | undefined
  /** Aborted when the connection of the sender ends, as far as the server can see that. */
  readonly signal?: AbortSignal
}

/** A writer holds its turn for this long. A timer renews it three times as often, by the metadata store's clock. */
export const turnMs = 30_000

/** A turn that is taken: whose session it is, and the entry of the writer if other requests can meet it. */
export interface TakenTurn {
  readonly owner: UploadOwner
  readonly upload: Upload
  readonly entry: WriterHandle | undefined
}

/**
 * One turn at an upload: the right to write to it, from the claim to the end. It owns the writer, the running hash and the
 * heartbeat that renews the turn while bytes arrive, while the store completes the object and while stored bytes are read
 * again. However the turn ends, `endings` says what becomes of the session and the bytes and what the caller hears.
 *
 *   await using turn = new UploadTurn(...)
 *   await turn.append(chunk)   or   await turn.commit(digest, chunk)
 */
export class UploadTurn implements AsyncDisposable {
  readonly #needs: TurnNeeds
  readonly #taken: TakenTurn
  readonly #heartbeat: Disposable
  #beating: Promise<void> | undefined
  #state: TurnState = 'opening'
  #chunk: IncomingChunk | undefined
  #writer: BlobWriter | undefined
  #hash: RunningHash | undefined
  #sizeBytes: number
  #isLost = false
  /** The session is recorded, committed or given back: nothing more may be done in this turn. */
  #isOver = false

  constructor(needs: TurnNeeds, taken: TakenTurn) {
    this.#needs = needs
    this.#taken = taken
    this.#sizeBytes = taken.upload.object.sizeBytes
    this.#heartbeat = needs.clock.every(turnMs / 3, () => this.#beat())
  }

  get upload(): Upload {
    return this.#taken.upload
  }

  get sizeBytes(): number {
    return this.#sizeBytes
  }

  /** The hash of all bytes of the upload, unless another process wrote some of them. */
  get hash(): RunningHash | undefined {
    return this.#hash
  }

  /**
   * Appends a chunk and records it; gives the new size. Where the chunk ends early, the bytes that came are recorded too, so
   * that the upload's status tells the truth, and then the fault is thrown.
   */
  async append(chunk: IncomingChunk): Promise<number> {
    let cut: unknown
    try {
      await this.#open(chunk, 'sha256')
      this.#state = 'appending'
      await this.#receive(chunk)
    } catch (fault) {
      if (endingOf(this.#state, eventOf(fault)).session !== 'grown') throw await this.abort(fault)
      cut = fault
    }
    try {
      this.#state = 'recording'
      await this.#record()
    } catch (fault) {
      throw await this.abort(fault, cut)
    }
    if (cut !== undefined) throw tellKept(cut, this.#sizeBytes)
    return this.#sizeBytes
  }

  /**
   * Takes the last bytes, if any, makes the whole durable, proves that it has this digest, and turns the session into a blob
   * of the repository in one transaction. `single`: the session lives in this request alone.
   */
  async commit(digest: Digest, chunk: IncomingChunk, kind: 'session' | 'single' = 'session'): Promise<void> {
    try {
      if (kind === 'single') this.#state = 'single'
      const writer = await this.#open(chunk, algorithmOf(digest))
      if (kind === 'session') this.#state = 'closing'
      await this.#receive(chunk)
      const object = await writer.complete()
      this.checkStillOurs()
      const actual = await hashOfStored(this.#needs, this, object, digest)
      if (actual !== digest) throw new RegistryRefusal('digest-mismatch', { digest, actual })
      if (kind === 'session') this.#state = 'committing'
      await this.#stopHeartbeat()
      this.checkStillOurs()
      await commitUpload(this.#needs, { ...this.#taken, digest, object, sizeBytes: this.#sizeBytes })
      this.#isOver = true
    } catch (fault) {
      throw await this.abort(fault)
    }
  }

  /**
   * Ends the turn after a fault, as `endings` says, and returns the error for the caller. What fails while this cleans up
   * changes nothing in the answer: a turn that cannot be given back runs out by itself. `earlier`: a fault of the same
   * request that came before this one, which the caller must hear instead.
   */
  async abort(fault: unknown, earlier?: unknown): Promise<unknown> {
    const ending = endingOf(this.#state, eventOf(fault))
    await this.#stopHeartbeat()
    if (!this.#isOver && ending.session !== 'untouched') {
      this.#isOver = true
      const isRemoved = await this.#giveUp(ending.session === 'removed').catch(() => false)
      if (isRemoved && ending.answer === 'upload-unknown' && fault instanceof Spoiled) this.#noteLoss()
    }
    if (earlier !== undefined) return earlier
    if (ending.answer === 'upload-unknown') return new RegistryRefusal('upload-unknown', { id: this.upload.id })
    return ending.answer === 'unavailable' ? new Unavailable('the blob store', { cause: fault }) : fault
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.#stopHeartbeat()
      // What counts was made durable by flush or complete: a close that fails changes nothing in the answer.
      await this.#writer?.close().catch(() => undefined)
    } finally {
      this.#taken.entry?.end()
    }
  }

  /** Throws when a heartbeat found that the turn was lost. */
  checkStillOurs(): void {
    if (!this.#isLost) return
    throw new RegistryRefusal('upload-unknown', {
      id: this.upload.id,
      reason: 'another request goes on with the upload',
    })
  }

  /** Goes on with a kept hash if it covers all bytes so far; an upload that is still empty begins a new one. */
  async #open(chunk: IncomingChunk, algorithm: DigestAlgorithm): Promise<BlobWriter> {
    const { upload } = this
    checkOrder(upload, chunk)
    const kept = this.#needs.writers.takeHash(upload)
    const isEmpty = upload.object.sizeBytes === 0
    this.#hash = isEmpty && kept?.algorithm !== algorithm ? startHash(algorithm) : kept
    this.#chunk = chunk
    this.#writer = await this.#needs.blobs.openWriter(upload.storageKey, upload.object)
    return this.#writer
  }

  /** Takes in the whole body, or as much of it as comes. */
  async #receive(chunk: IncomingChunk): Promise<void> {
    const { entry } = this.#taken
    const before = this.#sizeBytes
    this.#checkRoomFor(chunk.lengthBytes ?? 0)
    entry?.awaitSender()
    for await (const bytes of chunk.body) {
      entry?.awaitStore()
      this.checkStillOurs()
      this.#checkRoomFor(bytes.length)
      // First the writer: a chunk that it refuses must be in neither the hash nor the size.
      await this.#writer?.write(bytes)
      this.#hash?.update(bytes)
      this.#sizeBytes += bytes.length
      entry?.awaitSender()
    }
    entry?.awaitStore()
    // A chunk that is not as long as it said must never be appended silently.
    const received = this.#sizeBytes - before
    if (chunk.lengthBytes !== undefined && chunk.lengthBytes !== received) {
      throw new RegistryRefusal('content-length-mismatch', { announced: chunk.lengthBytes, received })
    }
  }

  #checkRoomFor(bytes: number): void {
    const max = this.#needs.settings.blobBytesMax
    if (this.#sizeBytes + bytes > max) throw new RegistryRefusal('blob-too-large', { max })
  }

  /** Makes what came durable, records it and gives the turn back. */
  async #record(): Promise<void> {
    const { upload } = this
    const object = await this.#writer?.flush()
    await this.#stopHeartbeat()
    // For whoever goes on: the hash of all bytes so far, in the algorithm that nearly everybody closes with.
    const digest = this.#hash?.algorithm === 'sha256' ? (`sha256:${this.#hash.hex()}` as Digest) : undefined
    if (object === undefined || !(await this.#needs.metadata.uploads.releaseTurn(upload, object, digest))) {
      throw new RegistryRefusal('upload-unknown', { id: upload.id })
    }
    this.#isOver = true
    if (this.#hash !== undefined) this.#needs.writers.keepHash(upload, object.sizeBytes, this.#hash)
  }

  /**
   * Whether the rows were written may be unknown (a connection that is cut at COMMIT), and the turn may be lost without our
   * knowing. Only a session that is open and ours proves that no row names the bytes and that no other writer relies on them.
   * Gives whether the session was removed.
   */
  async #giveUp(removesSession: boolean): Promise<boolean> {
    const { uploads } = this.#needs.metadata
    const { owner, upload } = this.#taken
    const isOurs = await uploads.holdsTurn(upload).catch(() => undefined)
    if (isOurs) await this.#writer?.rollBack().catch(() => undefined)
    if (!removesSession) {
      // Fenced by the epoch, so it is safe even when it is not known whose turn it is.
      if (isOurs !== false) await uploads.releaseTurn(upload, upload.object, upload.receivedDigest)
    } else if (isOurs ?? this.#state === 'single') {
      return this.#needs.metadata.transaction((tables) => tables.uploads.remove(owner, upload.id))
    }
    return false
  }

  #noteLoss(): void {
    const { owner, upload } = this.#taken
    this.#needs.noteLoss?.({ repository: owner.repository, upload: upload.id, storageKey: upload.storageKey })
  }

  #beat(): void {
    this.#beating ??= this.#keepTurn().finally(() => {
      this.#beating = undefined
    })
  }

  /** A metadata store that fails is asked again at the next beat. A turn that is lost ends the body. */
  async #keepTurn(): Promise<void> {
    const isKept = await this.#needs.metadata.uploads.renewTurn(this.upload, turnMs).catch(() => true)
    if (isKept) return
    this.#isLost = true
    this.#chunk?.body.cancel(new RegistryRefusal('upload-unknown', { id: this.upload.id }))
  }

  /** A beat that is still under way must not renew the turn after it was given back. */
  async #stopHeartbeat(): Promise<void> {
    this.#heartbeat[Symbol.dispose]()
    await this.#beating
  }
}

/** distribution-spec, "Pushing a blob in chunks": "Chunks MUST be uploaded in order". */
export function checkOrder(upload: Upload, { first }: IncomingChunk): void {
  if (first === undefined || first === upload.object.sizeBytes) return
  throw new RegistryRefusal('upload-out-of-order', { received: upload.object.sizeBytes })
}

/** Says in the refusal how many bytes of the upload are safe. */
function tellKept(cut: unknown, keptBytes: number): unknown {
  if (!(cut instanceof RegistryRefusal)) return cut
  return new RegistryRefusal(cut.refusal, { ...cut.details[0], kept: keptBytes })
}
