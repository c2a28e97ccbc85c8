import type { BlobWriter, CompleteObject, StorageKey, UnfinishedObject } from '../../ports/blob-store.ts'
import { freshName, toObjectName } from './object-names.ts'
import { isWorthAPart, sizeOfPart } from './part-plan.ts'
import { PartSender, type WriterNeeds } from './part-sender.ts'
import type { Piece } from './piece.ts'
import { totalBytes, type UploadNotes, writeNotes } from './upload-notes.ts'

type Ending = Pick<CompleteObject, 'key' | 'isCertain'>

/**
 * Appends to one object. Bytes are gathered into a piece; a piece that is full is sent as a part of a multipart upload,
 * while the next one is gathered. What a pause leaves over becomes a tail, an object by itself; an object that never got a
 * part is complete as its own tail, so that a small layer costs one request.
 */
export class S3BlobWriter implements BlobWriter {
  readonly #key: StorageKey
  readonly #needs: WriterNeeds
  readonly #sender: PartSender
  /** Where the upload stood at the last flush, or when the writer was opened. */
  #stood: UploadNotes
  #tail: UploadNotes['tail']
  /** The bytes behind the last part. Undefined while they stand in a tail alone, or where there are none. */
  #piece: Piece | undefined
  #replaced: StorageKey[] = []
  #position: number
  #madeByComplete: StorageKey | undefined

  constructor(key: StorageKey, needs: WriterNeeds, notes: UploadNotes) {
    this.#key = key
    this.#needs = needs
    this.#stood = { ...notes, replaced: [] }
    this.#tail = notes.tail
    this.#position = totalBytes(notes)
    this.#sender = new PartSender(key, needs, notes.multipart)
    // The notes are recorded, so what they replaced is needed no more.
    needs.letRun(this.#removeQuietly(notes.replaced))
  }

  async write(chunk: Uint8Array): Promise<void> {
    let rest = chunk
    while (rest.length > 0) {
      this.#sender.checkFault()
      const open = await this.#openPiece()
      const max = sizeOfPart(this.#needs.room.plan, this.#sender.nextNumber)
      const taken = rest.subarray(0, max - open.sizeBytes)
      const piece = await this.#needs.room.append(open, taken)
      this.#piece = piece
      this.#position += taken.length
      rest = rest.subarray(taken.length)
      if (piece.sizeBytes >= max) await this.#sendPiece(piece)
    }
  }

  async #openPiece(): Promise<Piece> {
    this.#piece ??= await this.#loadTail()
    return this.#piece
  }

  /** What follows goes behind the bytes of the tail, so they are needed here again. */
  async #loadTail(): Promise<Piece> {
    const tail = this.#tail
    const startsAt = this.#position - (tail?.sizeBytes ?? 0)
    let piece = await this.#needs.room.open(startsAt, this.#sender.nextNumber)
    if (tail === undefined) return piece
    try {
      // First the place, which others may hold for a while; then the request, which is read as fast as it comes.
      piece = await this.#needs.room.prepare(piece, tail.sizeBytes)
      const bytes = await this.#needs.client.read(toObjectName(this.#needs.prefix, tail.key), tail.sizeBytes)
      if (bytes === undefined) throw new Error('the tail of an upload is gone')
      for await (const chunk of bytes) piece = await this.#needs.room.append(piece, chunk)
      return piece
    } catch (error) {
      await this.#needs.room.close(piece)
      throw error
    }
  }

  async #sendPiece(piece: Piece): Promise<void> {
    this.#piece = undefined
    this.#dropTail()
    await this.#sender.send(piece)
  }

  #dropTail(): void {
    if (this.#tail !== undefined) this.#replaced.push(this.#tail.key)
    this.#tail = undefined
  }

  async flush(): Promise<UnfinishedObject> {
    const piece = this.#piece
    const isNew = piece !== undefined && piece.sizeBytes > (this.#tail?.sizeBytes ?? 0)
    if (
      isNew &&
      this.#sender.hasBegun &&
      isWorthAPart(this.#needs.room.plan, this.#sender.nextNumber, piece.sizeBytes)
    ) {
      await this.#sendPiece(piece)
    } else if (isNew) {
      const key = await this.#put(piece)
      this.#dropTail()
      this.#tail = { key, sizeBytes: piece.sizeBytes }
    }
    await this.#sender.drain()
    this.#stood = { multipart: this.#sender.multipart(), tail: this.#tail, replaced: [...this.#replaced] }
    const isEmpty = this.#position === 0
    return { sizeBytes: this.#position, notes: isEmpty ? undefined : writeNotes(this.#stood) }
  }

  async #put(piece: Piece): Promise<StorageKey> {
    const key = freshName(this.#key)
    await this.#needs.client.put(toObjectName(this.#needs.prefix, key), piece.body())
    return key
  }

  async complete(): Promise<CompleteObject> {
    const { key, isCertain } = this.#sender.hasBegun ? await this.#completeParts() : await this.#completeAtOnce()
    const leftovers = [
      ...this.#replaced,
      ...(this.#tail === undefined || this.#tail.key === key ? [] : [this.#tail.key]),
    ]
    return { key, isCertain, leftovers: leftovers.map((storageKey) => ({ storageKey, notes: undefined })) }
  }

  async #completeAtOnce(): Promise<Ending> {
    const isWhole = this.#tail !== undefined && this.#tail.sizeBytes === this.#position
    if (this.#tail !== undefined && isWhole) return { key: this.#tail.key, isCertain: true }
    this.#madeByComplete = await this.#put(await this.#openPiece())
    return { key: this.#madeByComplete, isCertain: true }
  }

  async #completeParts(): Promise<Ending> {
    const piece = this.#tail === undefined ? this.#piece : await this.#openPiece()
    if (piece !== undefined && piece.sizeBytes > 0) await this.#sendPiece(piece)
    return this.#sender.complete(this.#position)
  }

  async rewind(): Promise<void> {
    await this.#dropPiece()
    await this.#sender.rewind(this.#stood.multipart)
    if (this.#madeByComplete !== undefined) await this.#removeQuietly([this.#madeByComplete])
    this.#madeByComplete = undefined
    this.#tail = this.#stood.tail
    this.#replaced = [...this.#stood.replaced]
    this.#position = totalBytes(this.#stood)
  }

  /** Waits for nothing that travels: a client may be waiting for its answer. */
  async close(): Promise<void> {
    await this.#dropPiece()
    this.#needs.letRun(this.#sender.settle())
  }

  async #dropPiece(): Promise<void> {
    const piece = this.#piece
    this.#piece = undefined
    if (piece !== undefined) await this.#needs.room.close(piece)
  }

  /** What cannot be removed now is found by the sweep. */
  async #removeQuietly(keys: readonly StorageKey[]): Promise<void> {
    const { client, prefix } = this.#needs
    await Promise.all(keys.map((key) => client.remove(toObjectName(prefix, key)).catch(() => undefined)))
  }
}
