import type { BlobWriter, CompleteObject, StorageKey, UnfinishedObject } from '../../ports/blob-store.ts'
import { freshName, toObjectName } from './object-names.ts'
import { isWorthAPart, sizeOfPart } from './part-plan.ts'
import { PartSender, type WriterNeeds } from './part-sender.ts'
import type { Piece } from './piece.ts'
import { S3Fault } from './s3-fault.ts'
import { bytesOf, type Tail, totalBytes, type UploadNotes, writeNotes } from './upload-notes.ts'

type Ending = Pick<CompleteObject, 'key' | 'isCertain'>

/**
 * Appends to one object. Bytes are gathered into a piece; a piece that is full is sent as a part of a multipart upload,
 * while the next one is gathered. What a pause leaves over becomes a tail, an object by itself; an object that never got a
 * part is complete as its own tail, so that a small layer costs one request.
 *
 * Tails become fewer as they become many: each is more than twice as large as the next, and what is added to them reads and
 * replaces those alone that are hardly larger. Else a client that adds single bytes would move megabytes with each.
 */
export class S3BlobWriter implements BlobWriter {
  readonly #key: StorageKey
  readonly #needs: WriterNeeds
  readonly #sender: PartSender
  /** Where the upload stood at the last flush, or when the writer was opened. */
  #stood: UploadNotes
  /** The bytes behind the last part that stand in the store. */
  #tails: readonly Tail[]
  /** The bytes behind those, which stand nowhere yet. */
  #piece: Piece | undefined
  #replaced: StorageKey[] = []
  #position: number
  #madeByComplete: StorageKey | undefined

  constructor(key: StorageKey, needs: WriterNeeds, notes: UploadNotes) {
    this.#key = key
    this.#needs = needs
    this.#stood = { ...notes, replaced: [] }
    this.#tails = notes.tails
    this.#position = totalBytes(notes)
    this.#sender = new PartSender(key, needs, notes.multipart)
    // The notes are recorded, so what they replaced is needed no more.
    needs.letRun(this.#removeQuietly(notes.replaced))
  }

  async write(chunk: Uint8Array): Promise<void> {
    const { room } = this.#needs
    let rest = chunk
    while (rest.length > 0) {
      this.#sender.checkFault()
      const max = sizeOfPart(room.plan, this.#sender.nextNumber)
      let piece = await this.#openPiece()
      const taken = rest.subarray(0, Math.max(0, max - bytesOf(this.#tails) - piece.sizeBytes))
      // Before it is large, so that it takes one place, and nothing large is moved twice.
      if (!room.isSmall(piece.sizeBytes + taken.length)) piece = await this.#gather(this.#tails.length)
      this.#piece = piece = await room.append(piece, taken)
      this.#position += taken.length
      rest = rest.subarray(taken.length)
      if (bytesOf(this.#tails) + piece.sizeBytes >= max) await this.#sendPiece()
    }
  }

  async #openPiece(): Promise<Piece> {
    this.#piece ??= await this.#needs.room.open(this.#position, this.#sender.nextNumber)
    return this.#piece
  }

  /** The piece, with the bytes of the last so many tails in front. They are needed until the next notes are recorded. */
  async #gather(count: number): Promise<Piece> {
    const piece = await this.#openPiece()
    if (count === 0) return piece
    const { room, client, prefix } = this.#needs
    const tails = this.#tails.slice(-count)
    const sizeBytes = bytesOf(tails)
    let whole = await room.open(piece.startsAt - sizeBytes, this.#sender.nextNumber)
    try {
      // First the place, which others may hold for a while; then the requests, which are read as fast as they come.
      whole = await room.prepare(whole, sizeBytes)
      for (const tail of tails) {
        const bytes = await client.read(toObjectName(prefix, tail.key), tail.sizeBytes)
        if (bytes === undefined)
          throw new S3Fault('GetObject', { code: 'ended', words: 'a piece of the upload is lost' })
        for await (const chunk of bytes) whole = await room.append(whole, chunk)
      }
      for await (const chunk of bytesIn(piece)) whole = await room.append(whole, chunk)
    } catch (error) {
      await room.close(whole)
      throw error
    }
    this.#piece = whole
    this.#tails = this.#tails.slice(0, -count)
    this.#replaced.push(...tails.map(({ key }) => key))
    await room.close(piece)
    return whole
  }

  async #sendPiece(): Promise<void> {
    const piece = await this.#gather(this.#tails.length)
    this.#piece = undefined
    await this.#sender.send(piece)
  }

  async flush(): Promise<UnfinishedObject> {
    const newBytes = this.#piece?.sizeBytes ?? 0
    if (newBytes > 0) {
      const { plan } = this.#needs.room
      const size = bytesOf(this.#tails) + newBytes
      if (this.#sender.hasBegun && isWorthAPart(plan, this.#sender.nextNumber, size)) await this.#sendPiece()
      else await this.#putTail(newBytes)
    }
    await this.#sender.drain()
    this.#stood = { multipart: this.#sender.multipart(), tails: this.#tails, replaced: [...this.#replaced] }
    const isEmpty = this.#position === 0
    return { sizeBytes: this.#position, notes: isEmpty ? undefined : writeNotes(this.#stood) }
  }

  /** With those in front that are not more than twice as large: so there are never more than two dozen. */
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

  async #put(piece: Piece): Promise<StorageKey> {
    const key = freshName(this.#key)
    await this.#needs.client.put(toObjectName(this.#needs.prefix, key), piece.body())
    await this.#dropPiece()
    return key
  }

  async complete(): Promise<CompleteObject> {
    const { key, isCertain } = this.#sender.hasBegun ? await this.#completeParts() : await this.#completeAtOnce()
    const leftovers = [...this.#replaced, ...this.#tails.map((tail) => tail.key).filter((name) => name !== key)]
    return { key, isCertain, leftovers: leftovers.map((storageKey) => ({ storageKey, notes: undefined })) }
  }

  async #completeAtOnce(): Promise<Ending> {
    const [tail, ...more] = this.#tails
    if (tail !== undefined && more.length === 0 && tail.sizeBytes === this.#position) {
      return { key: tail.key, isCertain: true }
    }
    this.#madeByComplete = await this.#put(await this.#gather(this.#tails.length))
    return { key: this.#madeByComplete, isCertain: true }
  }

  async #completeParts(): Promise<Ending> {
    const isMore = this.#tails.length > 0 || (this.#piece?.sizeBytes ?? 0) > 0
    if (isMore) await this.#sendPiece()
    return this.#sender.complete(this.#position)
  }

  async rollBack(): Promise<void> {
    await this.#dropPiece()
    await this.#sender.rewind(this.#stood.multipart)
    if (this.#madeByComplete !== undefined) await this.#removeQuietly([this.#madeByComplete])
    this.#madeByComplete = undefined
    this.#tails = this.#stood.tails
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

function bytesIn(piece: Piece): AsyncIterable<Uint8Array> {
  return new Blob([piece.body().bytes]).stream()
}
