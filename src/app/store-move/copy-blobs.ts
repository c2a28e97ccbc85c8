import { startHash } from '../../lib/hashing.ts'
import { algorithmOf } from '../../oci/digest.ts'
import { Unavailable } from '../../oci/errors.ts'
import type { BlobStore, StorageKey } from '../../ports/blob-store.ts'
import type { Clock } from '../../ports/clock.ts'
import type { CopiedObjects, MovableBlob, MovableBlobs } from '../../ports/store-move.ts'

export interface CopyNeeds {
  readonly from: { readonly movable: Pick<MovableBlobs, 'list' | 'has'>; readonly blobs: Pick<BlobStore, 'read'> }
  readonly to: {
    readonly copied: Pick<CopiedObjects, 'list' | 'note' | 'discard'>
    readonly blobs: Pick<BlobStore, 'openWriter'>
  }
  readonly clock: Pick<Clock, 'freshId'>
}

export interface CopyWatch {
  /** So many more; fewer again, below zero, when they turn out to be copied in vain. */
  onBytes(bytes: number): void
  onBlob(blob: MovableBlob): void
  /** The world failed, and the blob is tried again once this resolves. */
  onTrouble(error: unknown): Promise<void>
}

/** A blob whose bytes are not what its digest says, or not there. */
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
 * Copies the bytes of all blobs that have not been copied yet, `atOnce` at a time, each through its hash: what is noted as
 * copied is complete, durable and what its digest says. Nothing is held but the chunks on their way. Can be stopped at any
 * point and begun again, while the registry goes on reading and writing at the old place.
 */
export async function copyBlobs(needs: CopyNeeds, atOnce: number, watch: CopyWatch): Promise<CopyOutcome> {
  const waiting = listUncopied(needs)
  const damaged: DamagedBlob[] = []
  let copied = 0
  const work = async (): Promise<void> => {
    for (let next = await waiting.next(); !next.done; next = await waiting.next()) {
      const outcome = await copyOne(needs, next.value, watch)
      if (outcome === 'copied') copied += 1
      else if (outcome !== 'gone') damaged.push({ blob: next.value, fault: outcome })
      watch.onBlob(next.value)
    }
  }
  const ends = await Promise.allSettled(
    Array.from({ length: atOnce }, () =>
      work().catch(async (error) => {
        // The others finish the blob that they have, and no more.
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
    const page = await at('old', from.movable.list(after, pageLength))
    const last = page.at(-1)
    if (last === undefined) return
    const copied = await at('new', to.copied.list(page.map((blob) => blob.storageKey)))
    for (const blob of page) if (!copied.has(blob.storageKey)) yield blob
    after = last.id
  }
}

type Outcome = 'copied' | 'gone' | DamagedBlob['fault']

async function copyOne(needs: CopyNeeds, blob: MovableBlob, watch: CopyWatch): Promise<Outcome> {
  for (let tries = 1; ; tries += 1) {
    let outcome: Outcome
    try {
      outcome = await attempt(needs, blob, watch)
    } catch (error) {
      if (tries === triesMax) throw error
      await watch.onTrouble(error)
      continue
    }
    if (outcome === 'copied') return outcome
    // The collector may have come between our look at the row and the bytes.
    if (!(await at('old', needs.from.movable.has(blob.storageKey)))) return 'gone'
    // What came over a network may have been damaged on its way.
    if (outcome === 'missing' || tries > 1) return outcome
  }
}

async function attempt({ from, to, clock }: CopyNeeds, blob: MovableBlob, watch: CopyWatch): Promise<Outcome> {
  const { digest, sizeBytes, storageKey: sourceKey } = blob
  const bytes = await at('old', from.blobs.read(sourceKey, sizeBytes))
  if (bytes === undefined) return 'missing'
  const key = clock.freshId() as StorageKey
  const writer = await at('new', to.blobs.openWriter(key, { sizeBytes: 0, notes: undefined }))
  let isComplete = false
  let sent = 0
  try {
    const hash = startHash(algorithmOf(digest))
    for await (const chunk of readOld(bytes)) {
      hash.update(chunk)
      await at('new', writer.write(chunk))
      sent += chunk.length
      watch.onBytes(chunk.length)
    }
    if (`${hash.algorithm}:${hash.hex()}` !== digest) return 'damaged'
    const object = await at('new', writer.complete())
    // From here on whoever finds no note of it must let it lie: the note may only have been lost on the way to us.
    isComplete = true
    await at('new', to.copied.note({ sourceKey, storageKey: object.key, digest, sizeBytes }, object.leftovers))
    sent = 0
    return 'copied'
  } finally {
    watch.onBytes(-sent)
    if (!isComplete) {
      await writer.rollBack().catch(() => undefined)
      await to.copied.discard({ storageKey: key, notes: undefined }).catch(() => undefined)
    }
    await writer.close()
  }
}

async function* readOld(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* bytes
  } catch (error) {
    throw withPlace(error, 'old')
  }
}

async function at<T>(place: 'old' | 'new', work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    throw withPlace(error, place)
  }
}

/** Whoever reads of it has two stores of each kind. */
function withPlace(error: unknown, place: 'old' | 'new'): unknown {
  return error instanceof Unavailable
    ? new Unavailable(`${error.what} of the ${place} place`, { cause: error.cause })
    : error
}
