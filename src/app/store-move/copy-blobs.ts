import { startHash } from '../../lib/hashing.ts'
import { algorithmOf } from '../../oci/digest.ts'
import { Unavailable } from '../../oci/errors.ts'
import type { BlobStore, StorageKey } from '../../ports/blob-store.ts'
import type { Clock } from '../../ports/clock.ts'
import type { CopiedObjects, MovableBlob, MovableBlobs } from '../../ports/store-move.ts'

export interface CopyNeeds {
  readonly from: { readonly movable: Pick<MovableBlobs, 'list' | 'has'>; readonly blobs: Pick<BlobStore, 'read'> }
  readonly to: {
    readonly copied: Pick<CopiedObjects, 'list' | 'add' | 'discard'>
    readonly blobs: Pick<BlobStore, 'openWriter'>
  }
  readonly clock: Pick<Clock, 'freshId'>
}

export interface CopyListener {
  /** So many more bytes were copied. Negative when the copy of a blob failed and its bytes count no more. */
  onBytes(bytes: number): void
  onBlob(blob: MovableBlob): void
  /** A dependency failed. The blob is tried again when this resolves. */
  onRetry(error: unknown): Promise<void>
}

/** A blob whose bytes are missing in the source, or do not have the blob's digest. */
export interface DamagedBlob {
  readonly blob: MovableBlob
  readonly fault: 'missing' | 'damaged'
}

export interface CopyOutcome {
  readonly copied: number
  readonly damaged: readonly DamagedBlob[]
}

const pageLength = 1_000
const triesMax = 4

/**
 * Copies all blobs that have not been copied yet, `atOnce` at a time, under new storage keys. A copy is recorded in the
 * target when it is complete, durable and verified by its digest. Memory holds only the chunks that are being copied. Can
 * be stopped at any moment and run again, while servers read and write at the source.
 */
export async function copyBlobs(needs: CopyNeeds, atOnce: number, listener: CopyListener): Promise<CopyOutcome> {
  const waiting = listUncopied(needs)
  const damaged: DamagedBlob[] = []
  let copied = 0
  const work = async (): Promise<void> => {
    for (let next = await waiting.next(); !next.done; next = await waiting.next()) {
      const outcome = await copyOne(needs, next.value, listener)
      if (outcome === 'copied') copied += 1
      else if (outcome !== 'gone') damaged.push({ blob: next.value, fault: outcome })
      listener.onBlob(next.value)
    }
  }
  const ends = await Promise.allSettled(
    Array.from({ length: atOnce }, () =>
      work().catch(async (error) => {
        // The other workers finish their blobs and take no more.
        await waiting.return(undefined)
        throw error
      }),
    ),
  )
  for (const end of ends) if (end.status === 'rejected') throw end.reason
  return { copied, damaged }
}

async function* listUncopied({ from, to }: CopyNeeds): AsyncGenerator<MovableBlob, undefined> {
  let after = 0
  for (;;) {
    const page = await at('source', from.movable.list(after, pageLength))
    const last = page.at(-1)
    if (last === undefined) return
    const copied = await at('target', to.copied.list(page.map((blob) => blob.storageKey)))
    for (const blob of page) if (!copied.has(blob.storageKey)) yield blob
    after = last.id
  }
}

type End = 'source' | 'target'

type Outcome = 'copied' | 'gone' | DamagedBlob['fault']

async function copyOne(needs: CopyNeeds, blob: MovableBlob, listener: CopyListener): Promise<Outcome> {
  for (let tries = 1; ; tries += 1) {
    let outcome: Outcome
    try {
      outcome = await attempt(needs, blob, listener)
    } catch (error) {
      if (tries === triesMax) throw error
      await listener.onRetry(error)
      continue
    }
    if (outcome === 'copied') return outcome
    // The source's collector may have removed the blob after its row was read.
    if (!(await at('source', needs.from.movable.has(blob.storageKey)))) return 'gone'
    // The bytes may have been damaged on the network, so they are read once more.
    if (outcome === 'missing' || tries > 1) return outcome
  }
}

async function attempt({ from, to, clock }: CopyNeeds, blob: MovableBlob, listener: CopyListener): Promise<Outcome> {
  const { digest, sizeBytes, storageKey: sourceKey } = blob
  const bytes = await at('source', from.blobs.read(sourceKey, sizeBytes))
  if (bytes === undefined) return 'missing'
  const key = clock.freshId() as StorageKey
  const writer = await at('target', to.blobs.openWriter(key, { sizeBytes: 0, notes: undefined }))
  let isComplete = false
  let sent = 0
  try {
    const hash = startHash(algorithmOf(digest))
    for await (const chunk of readSource(bytes)) {
      hash.update(chunk)
      await at('target', writer.write(chunk))
      sent += chunk.length
      listener.onBytes(chunk.length)
    }
    if (`${hash.algorithm}:${hash.hex()}` !== digest) return 'damaged'
    const object = await at('target', writer.complete())
    // From here on the object must stay even if recording it fails: only the answer may have been lost.
    isComplete = true
    await at('target', to.copied.add({ sourceKey, storageKey: object.key, digest, sizeBytes }, object.leftovers))
    sent = 0
    return 'copied'
  } finally {
    listener.onBytes(-sent)
    if (!isComplete) {
      await writer.rollBack().catch(() => undefined)
      await to.copied.discard({ storageKey: key, notes: undefined }).catch(() => undefined)
    }
    await writer.close()
  }
}

async function* readSource(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* bytes
  } catch (error) {
    throw withEnd(error, 'source')
  }
}

async function at<T>(end: End, work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    throw withEnd(error, end)
  }
}

/** A move has two stores of each kind, so the message says which one is unavailable. */
function withEnd(error: unknown, end: End): unknown {
  return error instanceof Unavailable ? new Unavailable(error.dependency, { end, cause: error.cause }) : error
}
