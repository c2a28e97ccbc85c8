import { hashHex } from '../lib/hashing.ts'
import { algorithmOf, type Digest } from '../oci/digest.ts'
import { RegistryRefusal, Unavailable } from '../oci/errors.ts'
import type { StorageKey } from '../ports/blob-store.ts'
import type { Clock } from '../ports/clock.ts'
import type { Upload, UploadOwner } from '../ports/uploads.ts'
import { becomesInline } from './blob-content.ts'
import { commitUpload } from './upload-commit.ts'
import type { IncomingChunk, TurnNeeds } from './upload-turn.ts'

// Short bodies need no turn. While a session is unclaimed and its bytes stay inline, a request first receives its whole
// body. Then one statement records the bytes, or one transaction turns the session into a blob. Both change the row only
// if it is as the request found it, so of two requests at once, one changes nothing.
//
// If a request cannot do this, nothing has changed. Then it claims a turn and receives the same body again, from memory.

/** How long a request waits for the end of a short body before it claims the turn. */
const patienceMs = 100

/** A body whose beginning was received. */
export interface StartedBody extends Disposable {
  /** All bytes of the body if they, together with those of the upload, are so few that they stay inline. */
  readonly bytes: Uint8Array | undefined
  /** The body from its first byte on. Can be read repeatedly if there are `bytes`. */
  readonly chunk: IncomingChunk
}

/** Receives the body if it may be short. A fault of the body is not thrown here, but when `chunk` is read. */
export async function receiveIfShort(needs: TurnNeeds, upload: Upload, chunk: IncomingChunk): Promise<StartedBody> {
  const { settings, disk, clock } = needs
  const { sizeBytes } = upload.object
  const { first, lengthBytes } = chunk
  const mayBeShort = upload.isUnclaimed && becomesInline(settings, sizeBytes + (lengthBytes ?? 0))
  if (!mayBeShort || disk.isLow()) return { bytes: undefined, chunk, [Symbol.dispose]: () => undefined }
  const body = new RepeatableBody(chunk.body)
  const received = await body.receive(limitOf(settings) - sizeBytes, clock)
  const bytes = lengthBytes === undefined || lengthBytes === received?.length ? received : undefined
  return { bytes, chunk: { body, first, lengthBytes }, [Symbol.dispose]: () => body.end() }
}

function limitOf({ inlineBytesMax, blobBytesMax }: TurnNeeds['settings']): number {
  return Math.min(inlineBytesMax, blobBytesMax)
}

/** Records the bytes; returns the new size. Undefined if the session has changed. */
export async function appendShort(
  { metadata: { uploads } }: TurnNeeds,
  owner: UploadOwner,
  upload: Upload,
  bytes: Uint8Array,
): Promise<number | undefined> {
  const inlineBytes = join(upload, bytes)
  const object = { sizeBytes: inlineBytes.length, notes: undefined, inlineBytes }
  const digest = `sha256:${hashHex('sha256', inlineBytes)}` as Digest
  const record = () => uploads.recordUnclaimed(upload, object, digest)
  const isRecorded = await record().catch(async (error: unknown) => {
    if (!(error instanceof Unavailable)) throw error
    // The statement may have succeeded although its answer was lost. Then a client that sends the bytes again would add
    // them twice. If it has succeeded, this one changes nothing, and the row has the epoch and the bytes of this request.
    if (await record()) return true
    const state = await uploads.find(owner, upload.id)
    const found = state !== undefined && 'open' in state ? state.open : undefined
    return found?.epoch === upload.epoch + 1 && found.receivedDigest === digest
  })
  return isRecorded ? object.sizeBytes : undefined
}

/**
 * Commits the upload with `bytes` as its last bytes. False if the session has changed, or the digest differs. `upload` may
 * have changed since the bytes were received for it.
 */
export async function commitShort(
  needs: TurnNeeds,
  owner: UploadOwner,
  upload: Upload,
  digest: Digest,
  bytes: Uint8Array,
): Promise<boolean> {
  const inlineBytes = join(upload, bytes)
  if (!upload.isUnclaimed || inlineBytes.length > limitOf(needs.settings)) return false
  const isVerified = bytes.length === 0 && upload.receivedDigest === digest
  if (!isVerified && hashLike(digest, inlineBytes) !== digest) return false
  const object = { key: upload.storageKey, isCertain: true, leftovers: [], inlineBytes }
  try {
    await commitUpload(needs, { owner, upload, digest, object, sizeBytes: inlineBytes.length })
    return true
  } catch (error) {
    if (error instanceof RegistryRefusal && error.refusal === 'upload-unknown') return false
    throw error
  }
}

/** Few bytes in one request need no session: they are received, verified, and stored with the blob in one transaction. */
export async function uploadShort(
  needs: TurnNeeds,
  owner: UploadOwner,
  digest: Digest,
  { body, lengthBytes = 0 }: IncomingChunk,
): Promise<void> {
  if (needs.disk.isLow()) throw new RegistryRefusal('disk-low')
  const inlineBytes = new Uint8Array(lengthBytes)
  let received = 0
  for await (const bytes of body) {
    if (received + bytes.length <= lengthBytes) inlineBytes.set(bytes, received)
    received += bytes.length
  }
  if (received !== lengthBytes) {
    throw new RegistryRefusal('content-length-mismatch', { announced: lengthBytes, received })
  }
  const actual = hashLike(digest, inlineBytes)
  if (actual !== digest) throw new RegistryRefusal('digest-mismatch', { digest, actual })
  const object = { key: needs.clock.freshId() as StorageKey, isCertain: true, leftovers: [], inlineBytes }
  await commitUpload(needs, { owner, upload: undefined, digest, object, sizeBytes: lengthBytes })
}

/** The digest of the bytes in the algorithm of `expected`. */
function hashLike(expected: Digest, bytes: Uint8Array): string {
  const algorithm = algorithmOf(expected)
  return `${algorithm}:${hashHex(algorithm, bytes)}`
}

function join({ object }: Upload, bytes: Uint8Array): Uint8Array {
  return object.inlineBytes === undefined ? bytes : Buffer.concat([object.inlineBytes, bytes])
}

/** A body that begins with what `receive` has read. If that was all of it, it can be read repeatedly. */
class RepeatableBody implements AsyncIterable<Uint8Array> {
  readonly #body: IncomingChunk['body']
  readonly #rest: AsyncIterator<Uint8Array>
  readonly #pieces: Uint8Array[] = []
  /** The last read, if its result was not taken yet, or if it was the end or a fault of the body. */
  #next: Promise<IteratorResult<Uint8Array>> | undefined
  #hasEnded = false

  constructor(body: IncomingChunk['body']) {
    this.#body = body
    this.#rest = body[Symbol.asyncIterator]()
  }

  /** All bytes. Undefined if there are more of them, or if the body does not end soon, or fails. */
  async receive(bytesMax: number, clock: Pick<Clock, 'every'>): Promise<Uint8Array | undefined> {
    const { promise: late, resolve } = Promise.withResolvers<undefined>()
    using _timer = clock.every(patienceMs, () => resolve(undefined))
    for (let sizeBytes = 0; sizeBytes <= bytesMax; ) {
      const step = await Promise.race([this.#read(), late]).catch(() => undefined)
      const piece = step && this.#take(step)
      if (piece === undefined) break
      // A copy, because the source may free a chunk when the next one is requested.
      this.#pieces.push(new Uint8Array(piece))
      sizeBytes += piece.length
    }
    if (!this.#hasEnded) return undefined
    return this.#pieces.length === 1 ? this.#pieces[0] : Buffer.concat(this.#pieces)
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    if (this.#hasEnded) {
      // Copies, because a writer may free what it has written.
      for (const piece of this.#pieces) yield new Uint8Array(piece)
      return
    }
    try {
      // Not kept: this may be the beginning of a large upload.
      for (;;) {
        const piece = this.#pieces.shift() ?? this.#take(await this.#read())
        if (piece === undefined) return
        yield piece
      }
    } finally {
      this.end()
    }
  }

  cancel(reason: Error): void {
    this.#body.cancel(reason)
  }

  /** Stops reading. A read that is under way is cancelled, because its bytes would be lost. */
  end(): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    if (this.#next !== undefined)
      this.cancel(new RegistryRefusal('body-incomplete', { reason: 'the body is not needed' }))
    this.#rest.return?.().catch(() => undefined)
  }

  /** Again the same read until its result is taken. */
  #read(): Promise<IteratorResult<Uint8Array>> {
    this.#next ??= this.#rest.next()
    return this.#next
  }

  #take({ done, value }: IteratorResult<Uint8Array>): Uint8Array | undefined {
    if (done) this.#hasEnded = true
    else this.#next = undefined
    return done ? undefined : value
  }
}
