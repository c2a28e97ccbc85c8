import { startHash } from '../lib/hashing.ts'
import { algorithmOf } from '../oci/digest.ts'
import type { BlobStore, OutgoingBytes, StorageKey } from '../ports/blob-store.ts'
import type { Clock } from '../ports/clock.ts'
import type { CopiedObjects, MovableBlob, MovableBlobs } from '../ports/moves.ts'

export interface CopyNeeds {
  readonly from: { readonly movable: Pick<MovableBlobs, 'list' | 'has'>; readonly blobs: Pick<BlobStore, 'open'> }
  readonly to: {
    readonly copied: Pick<CopiedObjects, 'list' | 'note' | 'discard'>
    readonly blobs: Pick<BlobStore, 'openWriter'>
  }
  readonly clock: Pick<Clock, 'freshId'>
}

export interface CopyWatch {
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
    const page = await from.movable.list(after, pageLength)
    const last = page.at(-1)
    if (last === undefined) return
    const copied = await to.copied.list(page.map((blob) => blob.storageKey))
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
    if (!(await needs.from.movable.has(blob.storageKey))) return 'gone'
    // What came over a network may have been damaged on its way.
    if (outcome === 'missing' || tries > 1) return outcome
  }
}

async function attempt({ from, to, clock }: CopyNeeds, blob: MovableBlob, watch: CopyWatch): Promise<Outcome> {
  const { digest, sizeBytes, storageKey: sourceKey } = blob
  const bytes = await from.blobs.open(sourceKey, sizeBytes)
  if (bytes === undefined) return 'missing'
  const key = clock.freshId() as StorageKey
  const writer = await to.blobs.openWriter(key, { sizeBytes: 0, notes: undefined })
  let isComplete = false
  try {
    const hash = startHash(algorithmOf(digest))
    for await (const chunk of chunksOf(bytes)) {
      hash.update(chunk)
      await writer.write(chunk)
      watch.onBytes(chunk.length)
    }
    if (`${hash.algorithm}:${hash.hex()}` !== digest) return 'damaged'
    const object = await writer.complete()
    // From here on whoever finds no note of it must let it lie: the note may only have been lost on the way to us.
    isComplete = true
    await to.copied.note({ sourceKey, storageKey: object.key, digest, sizeBytes }, object.leftovers)
    return 'copied'
  } finally {
    if (!isComplete) {
      await writer.rewind().catch(() => undefined)
      await to.copied.discard({ storageKey: key, notes: undefined }).catch(() => undefined)
    }
    await writer.close()
  }
}

function chunksOf(bytes: OutgoingBytes): AsyncIterable<Uint8Array> {
  return bytes instanceof Blob ? bytes.stream() : bytes
}
