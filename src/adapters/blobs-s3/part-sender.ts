import { startHash } from '../../lib/hashing.ts'
import type { CompleteObject, StorageKey } from '../../ports/blob-store.ts'
import { freshName, toObjectName } from './object-names.ts'
import type { Piece } from './piece.ts'
import type { PieceRoom } from './piece-room.ts'
import type { S3Client } from './s3-client.ts'
import { endedFault } from './s3-complete.ts'
import { S3Fault } from './s3-fault.ts'
import type { Multipart, SentPart } from './upload-notes.ts'

/** What a writer works with. */
export interface WriterNeeds {
  readonly client: S3Client
  readonly prefix: string
  readonly room: PieceRoom
  /** For what goes on behind the answer to a client, and never rejects: the store waits for it when it is closed. */
  letRun(work: Promise<unknown>): void
}

/** So many pieces of one object travel at once; the next one waits. */
const piecesAtOnce = 2

/** An answer of "no such upload" to a part that is stored already, in an object that was complete before. */
const storedAlready = ''

/**
 * Sends pieces as the parts of one multipart upload, which it begins with the first. Their numbers and ETags are ours to
 * keep: S3 promises nothing about what its own list of parts shows when.
 */
export class PartSender {
  readonly #key: StorageKey
  readonly #needs: WriterNeeds
  #begun: Pick<Multipart, 'key' | 'uploadId'> | undefined
  #parts: SentPart[]
  #sent: number
  #fault: unknown
  #mayBeComplete = false
  readonly #sending = new Set<Promise<void>>()

  constructor(key: StorageKey, needs: WriterNeeds, multipart: Multipart | undefined) {
    this.#key = key
    this.#needs = needs
    this.#begun = multipart
    this.#parts = [...(multipart?.parts ?? [])]
    this.#sent = this.#parts.length
  }

  get hasBegun(): boolean {
    return this.#begun !== undefined
  }

  get nextNumber(): number {
    return this.#sent + 1
  }

  /** A fault is final for this writer: nobody knows what the store has of the part. */
  checkFault(): void {
    if (this.#fault !== undefined) throw this.#fault
  }

  /** Begins to send the piece, which is the sender's from now on, once not too many are on their way. */
  async send(piece: Piece): Promise<void> {
    this.#sent += 1
    const number = this.#sent
    try {
      while (this.#sending.size >= piecesAtOnce) await Promise.race(this.#sending)
      this.checkFault()
      this.#begun ??= await this.#begin()
    } catch (error) {
      this.#fault ??= error
      await this.#needs.room.close(piece)
      throw error
    }
    const begun = this.#begun
    const sending = this.#upload(begun, number, piece)
      .finally(() => this.#needs.room.close(piece))
      .catch((error: unknown) => {
        this.#fault ??= error
      })
      .finally(() => this.#sending.delete(sending))
    this.#sending.add(sending)
  }

  async #begin(): Promise<Pick<Multipart, 'key' | 'uploadId'>> {
    const key = freshName(this.#key)
    return { key, uploadId: await this.#needs.client.beginUpload(toObjectName(this.#needs.prefix, key)) }
  }

  async #upload({ key, uploadId }: Pick<Multipart, 'key' | 'uploadId'>, number: number, piece: Piece): Promise<void> {
    const name = toObjectName(this.#needs.prefix, key)
    const { sizeBytes } = piece
    try {
      const etag = await this.#needs.client.uploadPart(name, uploadId, number, piece.body())
      this.#parts[number - 1] = { etag, sizeBytes }
    } catch (error) {
      if (!(error instanceof S3Fault) || error.code !== 'NoSuchUpload') throw error
      const total = await this.#needs.client.sizeOf(name)
      if (total === undefined) throw endedFault('UploadPart', error)
      if (!(await this.#isStored(name, total, piece))) throw error
      this.#parts[number - 1] = { etag: storedAlready, sizeBytes }
    }
  }

  /**
   * The upload was complete once, and what should have named it failed. Its client sends the same end again: where those
   * very bytes stand in the object already, there is nothing to send.
   */
  async #isStored(name: string, total: number, piece: Piece): Promise<boolean> {
    const last = piece.startsAt + piece.sizeBytes - 1
    if (last >= total) return false
    const stored = await this.#needs.client.read(name, total, { first: piece.startsAt, last })
    if (stored === undefined) return false
    const { bytes } = piece.body()
    return (await hashOf(stored)) === (await hashOf(new Blob([bytes]).stream()))
  }

  /** All that was sent has arrived. */
  async drain(): Promise<void> {
    await this.settle()
    this.checkFault()
  }

  /** Nothing is on its way any more, arrived or not. */
  async settle(): Promise<void> {
    await Promise.all(this.#sending)
  }

  multipart(): Multipart | undefined {
    return this.#begun && { ...this.#begun, parts: [...this.#parts] }
  }

  async complete(sizeBytes: number): Promise<Pick<CompleteObject, 'key' | 'isCertain'>> {
    await this.drain()
    if (this.#begun === undefined) throw new Error('an upload without parts has nothing to complete')
    const { key, uploadId } = this.#begun
    const etags = this.#parts.map(({ etag }) => etag)
    this.#mayBeComplete = true
    const name = toObjectName(this.#needs.prefix, key)
    return { key, isCertain: await this.#needs.client.completeUpload(name, uploadId, etags, sizeBytes) }
  }

  /** Back to these parts. Those behind them count for nobody; sent again, they are replaced. */
  async rewind(to: Multipart | undefined): Promise<void> {
    await this.settle()
    if (to === undefined && this.#begun !== undefined) {
      const { client, prefix } = this.#needs
      const name = toObjectName(prefix, this.#begun.key)
      // What cannot be aborted or removed now is found by the sweep.
      await client.abortUpload(name, this.#begun.uploadId).catch(() => undefined)
      if (this.#mayBeComplete) await client.remove(name).catch(() => undefined)
    }
    this.#mayBeComplete = false
    this.#begun = to
    this.#parts = [...(to?.parts ?? [])]
    this.#sent = this.#parts.length
    this.#fault = undefined
  }
}

async function hashOf(bytes: AsyncIterable<Uint8Array>): Promise<string> {
  const hash = startHash('sha256')
  for await (const chunk of bytes) hash.update(chunk)
  return hash.hex()
}
