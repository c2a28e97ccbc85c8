import { type RunningHash, startHash } from '../lib/hashing.ts'
import { algorithmOf, type Digest, type DigestAlgorithm } from '../oci/digest.ts'
import { type LostBytes, RegistryRefusal, Spoiled, Unavailable } from '../oci/errors.ts'
import type { BlobStore, BlobWriter } from '../ports/blob-store.ts'
import type { Clock } from '../ports/clock.ts'
import type { MetadataStore } from '../ports/metadata-store.ts'
import type { Upload, UploadOwner } from '../ports/uploads.ts'
import { openContentWriter, type WriteNeeds } from './blob-content.ts'
import { checkRoom, findRoom, type Room, toLimited } from './quotas.ts'
import type { RegistrySettings } from './settings.ts'
import { TurnHeartbeat, turnMs } from './turn-heartbeat.ts'
import { commitUpload, computeDigest } from './upload-commit.ts'
import { endingOf, eventOf, type TurnState } from './upload-endings.ts'
import type { UploadWriters, WriterHandle } from './upload-writers.ts'

export interface TurnNeeds extends WriteNeeds {
  readonly blobs: Pick<BlobStore, 'openWriter' | 'read' | 'has'>
  readonly metadata: Pick<MetadataStore, 'uploads' | 'blobs' | 'usage' | 'transaction'>
  readonly clock: Pick<Clock, 'every' | 'freshId'>
  readonly writers: UploadWriters
  readonly settings: Pick<RegistrySettings, 'blobBytesMax' | 'inlineBytesMax'>
  /** Called when stored bytes are found lost, to write a line to the log. */
  readonly noteLoss?: (lost: LostBytes) => void
}

/** The body of a request, and what its headers say about it. */
export interface IncomingChunk {
  readonly body: AsyncIterable<Uint8Array> & { cancel(reason: Error): void }
  /** The offset of the first byte, from `Content-Range`. */
  readonly first: number | undefined
  /** The announced length, if there is one. */
  readonly lengthBytes: number | undefined
  /** Aborted when the client closes the connection, as far as the server can see that. */
  readonly signal?: AbortSignal
}

/**
 * A turn: the exclusive, time-limited right to write to an upload (a lease with a fencing token, its epoch). This
 * object owns one turn from the claim to the end: the writer, the running hash, and a heartbeat that renews the turn
 * while bytes arrive, while the store completes the object, and while stored bytes are read again. A fault aborts the
 * turn as `upload-endings.ts` says. Usage: `await using turn = await UploadTurn.claim(...)`, then `append` or `commit`.
 */
export class UploadTurn implements AsyncDisposable {
  readonly #needs: TurnNeeds
  readonly #owner: UploadOwner
  readonly #upload: Upload
  readonly #handle: WriterHandle | undefined
  readonly #heartbeat: TurnHeartbeat
  #state: TurnState
  #chunk: IncomingChunk | undefined
  #writer: BlobWriter | undefined
  /** The hash of all bytes of the upload. Undefined if another process wrote some of them. */
  #hash: RunningHash | undefined
  #sizeBytes: number
  /** How much of the account's quota is left. */
  #room: Room | undefined
  /** True after the session was recorded, committed or aborted. */
  #hasEnded = false

  private constructor(needs: TurnNeeds, owner: UploadOwner, upload: Upload, handle: WriterHandle | undefined) {
    this.#needs = needs
    this.#owner = owner
    this.#upload = upload
    this.#handle = handle
    this.#state = handle === undefined ? 'single' : 'opening'
    this.#sizeBytes = upload.object.sizeBytes
    this.#heartbeat = new TurnHeartbeat(needs, upload, (loss) => this.#chunk?.body.cancel(loss))
  }

  /** The turn at a session that this request has just created. No other request knows the session. */
  static ofNewUpload(needs: TurnNeeds, owner: UploadOwner, upload: Upload): UploadTurn {
    return new UploadTurn(needs, owner, upload, undefined)
  }

  /**
   * Claims the turn at an open session; undefined if another writer has it, or if another request has recorded a short body
   * since the session was `seen`. `closing`: the digest with which this request will commit the upload.
   */
  static async claim(
    needs: TurnNeeds,
    owner: UploadOwner,
    seen: Upload,
    handle: WriterHandle,
    closing?: Digest,
  ): Promise<UploadTurn | undefined> {
    const release = (turn: Upload) => needs.metadata.uploads.renewTurn(turn, 0).catch(() => handle.keepUnreleased(turn))
    const claim = () =>
      needs.metadata.uploads.claimTurn(owner, seen.id, turnMs, closing).catch(async (error: unknown) => {
        // The claim may have succeeded although its answer was lost. If another writer has this epoch, it renews its turn.
        await release({ ...seen, epoch: seen.epoch + 1 })
        throw error
      })
    const upload = await needs.writers.claimAlone(seen.id, claim, release)
    const hasChanged = seen.isUnclaimed && upload?.object.sizeBytes !== seen.object.sizeBytes
    if (upload === undefined || !hasChanged) return upload && new UploadTurn(needs, owner, upload, handle)
    await release(upload)
    return undefined
  }

  /**
   * Appends a chunk and records it; returns the new size. If the chunk ends early, the bytes that arrived are recorded
   * too, so that the client can continue behind them. Then the fault is thrown.
   */
  async append(chunk: IncomingChunk): Promise<number> {
    let cut: unknown
    try {
      await this.#open(chunk, 'sha256')
      this.#enter('appending')
      cut = await this.#receive(chunk).then(() => undefined, throwUnlessKept)
      this.#enter('recording')
      await this.#record()
    } catch (fault) {
      throw await this.abort(fault, cut)
    }
    if (cut !== undefined) throw withKeptBytes(cut, this.#sizeBytes)
    return this.#sizeBytes
  }

  /**
   * Appends the last bytes, if there are any, completes the object, verifies its digest, and turns the session into a
   * blob of the repository in one transaction.
   */
  async commit(digest: Digest, chunk: IncomingChunk): Promise<void> {
    try {
      const writer = await this.#open(chunk, algorithmOf(digest))
      this.#enter('closing')
      await this.#receive(chunk)
      const object = await writer.complete()
      this.#heartbeat.checkNotLost()
      const written = { upload: this.#upload, hash: this.#hash, sizeBytes: this.#sizeBytes }
      const actual = await computeDigest(this.#needs, written, object, digest, () => this.#heartbeat.checkNotLost())
      if (actual !== digest) throw new RegistryRefusal('digest-mismatch', { digest, actual })
      this.#enter('committing')
      await this.#heartbeat.stop()
      this.#heartbeat.checkNotLost()
      await commitUpload(this.#needs, { ...written, owner: this.#owner, digest, object })
      this.#hasEnded = true
    } catch (fault) {
      throw await this.abort(fault)
    }
  }

  /**
   * Ends the turn after a fault as the table says. Returns the error for the caller: `earlier` if the request had a
   * fault before this one. A failure of the clean-up changes nothing in the answer.
   */
  async abort(fault: unknown, earlier?: unknown): Promise<unknown> {
    const ending = endingOf(this.#state, eventOf(fault))
    await this.#heartbeat.stop()
    if (!this.#hasEnded && ending.session !== 'untouched') {
      this.#hasEnded = true
      const isRemoved = await this.#rollBack(ending.session === 'removed').catch(() => {
        // The next request in this process releases the turn. In another process it waits until the turn expires.
        this.#handle?.keepUnreleased(this.#upload)
        return false
      })
      if (isRemoved && ending.answer === 'upload-unknown' && fault instanceof Spoiled) {
        const { id, storageKey } = this.#upload
        this.#needs.noteLoss?.({ repository: this.#owner.repository, upload: id, storageKey })
      }
    }
    if (earlier !== undefined) return earlier
    if (ending.answer === 'upload-unknown') return new RegistryRefusal('upload-unknown', { id: this.#upload.id })
    return ending.answer === 'unavailable' ? new Unavailable('blob-store', { cause: fault }) : fault
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#heartbeat.stop()
    // `flush` or `complete` made durable what was acknowledged, so a failing `close` changes nothing in the answer.
    await this.#writer?.close().catch(() => undefined)
  }

  /** A single request is in one state from its beginning to its end. */
  #enter(state: TurnState): void {
    if (this.#state !== 'single') this.#state = state
  }

  /** Continues with the kept hash if it covers all bytes so far. An empty upload starts a new hash. */
  async #open(chunk: IncomingChunk, algorithm: DigestAlgorithm): Promise<BlobWriter> {
    const upload = this.#upload
    checkOrder(upload, chunk)
    if (this.#owner.quota !== undefined) this.#room = await findRoom(this.#needs.metadata, toLimited(this.#owner))
    const kept = this.#needs.writers.takeHash(upload)
    const isEmpty = upload.object.sizeBytes === 0
    this.#hash = isEmpty && kept?.algorithm !== algorithm ? startHash(algorithm) : kept
    const { inlineBytes } = upload.object
    if (this.#hash === undefined && inlineBytes !== undefined) {
      this.#hash = startHash(algorithm)
      this.#hash.update(inlineBytes)
    }
    this.#chunk = chunk
    this.#writer = await openContentWriter(this.#needs, upload)
    return this.#writer
  }

  async #receive(chunk: IncomingChunk): Promise<void> {
    const sizeBefore = this.#sizeBytes
    this.#checkSize(chunk.lengthBytes ?? 0)
    this.#handle?.markWaitingForClient()
    for await (const bytes of chunk.body) {
      this.#handle?.markWaitingForStore()
      this.#heartbeat.checkNotLost()
      this.#checkSize(bytes.length)
      // The writer comes first: bytes that it refuses must be in neither the hash nor the size.
      await this.#writer?.write(bytes)
      this.#hash?.update(bytes)
      this.#sizeBytes += bytes.length
      this.#handle?.markWaitingForClient()
    }
    this.#handle?.markWaitingForStore()
    const received = this.#sizeBytes - sizeBefore
    if (chunk.lengthBytes !== undefined && chunk.lengthBytes !== received) {
      throw new RegistryRefusal('content-length-mismatch', { announced: chunk.lengthBytes, received })
    }
  }

  #checkSize(moreBytes: number): void {
    const max = this.#needs.settings.blobBytesMax
    if (this.#sizeBytes + moreBytes > max) throw new RegistryRefusal('blob-too-large', { max })
    checkRoom(this.#room, this.#sizeBytes + moreBytes)
  }

  /** Makes the received bytes durable, records the new size and releases the turn. */
  async #record(): Promise<void> {
    const upload = this.#upload
    const object = await this.#writer?.flush()
    await this.#heartbeat.stop()
    // For a next writer on another server. Most uploads are committed with SHA-256, so only that hash is recorded.
    const digest = this.#hash?.algorithm === 'sha256' ? (`sha256:${this.#hash.hex()}` as Digest) : undefined
    if (object === undefined || !(await this.#needs.metadata.uploads.releaseTurn(upload, object, digest))) {
      throw new RegistryRefusal('upload-unknown', { id: upload.id })
    }
    this.#hasEnded = true
    if (this.#hash !== undefined) this.#needs.writers.keepHash(upload, object.sizeBytes, this.#hash)
  }

  /**
   * Rolls the bytes back and releases the turn, or removes the session; returns whether the session was removed. A lost
   * answer may hide that the rows were written, or that the turn was lost. Only `holdsTurn` proves that no row names
   * the bytes and that no other writer uses them.
   */
  async #rollBack(removesSession: boolean): Promise<boolean> {
    const { uploads } = this.#needs.metadata
    const upload = this.#upload
    const holdsTurn = await uploads.holdsTurn(upload).catch(() => undefined)
    if (holdsTurn) await this.#writer?.rollBack().catch(() => undefined)
    if (!removesSession) {
      // The epoch fences this call, so it is safe if it is unknown who holds the turn.
      if (holdsTurn !== false) await uploads.releaseTurn(upload, upload.object, upload.receivedDigest)
      return false
    }
    if (!(holdsTurn ?? this.#state === 'single')) return false
    return this.#needs.metadata.transaction((tables) => tables.uploads.remove(this.#owner, upload.id))
  }
}

/** distribution-spec, "Pushing a blob in chunks": "Chunks MUST be uploaded in order". */
export function checkOrder(upload: Upload, { first }: IncomingChunk): void {
  if (first === undefined || first === upload.object.sizeBytes) return
  throw new RegistryRefusal('upload-out-of-order', { received: upload.object.sizeBytes })
}

/** Returns the fault if the session keeps the bytes that came before it. */
function throwUnlessKept(fault: unknown): unknown {
  if (endingOf('appending', eventOf(fault)).session !== 'grown') throw fault
  return fault
}

/** Adds to the refusal how many bytes of the upload are stored. */
function withKeptBytes(cut: unknown, keptBytes: number): unknown {
  if (!(cut instanceof RegistryRefusal)) return cut
  return new RegistryRefusal(cut.refusal, { ...cut.details[0], kept: keptBytes })
}
