import type { BlobStore, RemovableObject } from '../ports/blob-store.ts'
import type { GarbageAges, GarbageForecast } from '../ports/garbage.ts'
import type { MetadataStore, Tables } from '../ports/metadata-store.ts'
import { isReadOnly } from './read-only.ts'

type CollectNeeds = {
  readonly metadata: Pick<MetadataStore, 'garbage' | 'transaction' | 'marks'>
  readonly blobs: Pick<BlobStore, 'remove' | 'listOlder'>
}

export interface Collected {
  readonly uploads: number
  readonly blobs: number
  readonly bytes: number
  readonly repositories: number
  readonly purged: number
}

const batchSize = 100

const removalsAtOnce = 8

/**
 * Collects what nobody needs, beside the running registry: no window, no leader, no lock on reads. Rows go first, in
 * transactions that lock a blob and then look whether it is used; its key goes to the trash, and only keys from the trash
 * lose their bytes. Whatever happens in between, a manifest that can be pulled has all its blobs.
 *
 * This is the only code that removes bytes. It rests while the store takes no changes: another may name the same bytes then.
 */
export async function collectGarbage(
  needs: CollectNeeds,
  ages: GarbageAges,
  shouldStop: () => boolean = () => false,
): Promise<Collected> {
  const uploads = await expireUploads(needs, ages, shouldStop)
  const buried = await buryBlobs(needs, ages, shouldStop)
  const repositories = await needs.metadata.transaction(async (tables) =>
    (await mayChange(tables)) ? tables.garbage.removeEmptyRepositories(ages.leaseMs, batchSize) : 0,
  )
  const purged = await purgeTrash(needs, ages, shouldStop)
  return { uploads, ...buried, repositories, purged }
}

/** What `collectGarbage` would find now; changes nothing. */
export function forecastGarbage(
  { metadata }: Pick<CollectNeeds, 'metadata'>,
  ages: GarbageAges,
): Promise<GarbageForecast> {
  return metadata.garbage.forecast(ages)
}

/** Until the transaction ends. */
async function mayChange({ marks }: Pick<Tables, 'marks'>): Promise<boolean> {
  return (await marks.findLocked('read-only')) === undefined
}

async function expireUploads(needs: CollectNeeds, ages: GarbageAges, shouldStop: () => boolean): Promise<number> {
  let expired = 0
  while (!shouldStop()) {
    const count = await needs.metadata.transaction(async (tables) =>
      (await mayChange(tables)) ? tables.garbage.expireUploads(ages, batchSize) : 0,
    )
    expired += count
    if (count < batchSize) break
  }
  return expired
}

/** One blob a transaction, so that nobody who pushes waits for longer than one look. */
async function buryBlobs(
  needs: CollectNeeds,
  { leaseMs }: GarbageAges,
  shouldStop: () => boolean,
): Promise<{ blobs: number; bytes: number }> {
  let blobs = 0
  let bytes = 0
  let queuedFrom = 0
  while (!shouldStop()) {
    const outcome = await needs.metadata.transaction(async (tables) => {
      const { garbage } = tables
      if (!(await mayChange(tables))) return undefined
      const candidate = await garbage.lockNextDue(leaseMs, queuedFrom)
      if (candidate === undefined) return undefined
      const isLive = await garbage.isLive(candidate, leaseMs)
      await (isLive ? garbage.keep(candidate, leaseMs) : garbage.bury(candidate))
      return { ...candidate, isLive }
    })
    if (outcome === undefined) break
    queuedFrom = outcome.queuedAt
    if (outcome.isLive) continue
    blobs += 1
    bytes += outcome.sizeBytes
  }
  return { blobs, bytes }
}

/**
 * Bytes first, note second: a crash between leaves a note of bytes that are gone, and removing them again is no error. An
 * object that cannot be removed keeps its note, and does not keep the others. Several processes share the work: what one
 * has taken, the others pass over.
 */
async function purgeTrash(needs: CollectNeeds, ages: GarbageAges, shouldStop: () => boolean): Promise<number> {
  let purged = 0
  let fault: unknown
  while (!shouldStop() && !(await isReadOnly(needs))) {
    const trashed = await needs.metadata.garbage.takePurgeable(ages.quarantineMs, ages.holdMs, batchSize)
    for (let at = 0; at < trashed.length && !shouldStop(); at += removalsAtOnce) {
      const outcomes = await Promise.allSettled(trashed.slice(at, at + removalsAtOnce).map((one) => purge(needs, one)))
      purged += outcomes.filter(({ status }) => status === 'fulfilled').length
      fault ??= outcomes.find((outcome) => outcome.status === 'rejected')?.reason
    }
    // A store that fails is not asked for the rest as well: there is a next time.
    if (fault !== undefined || trashed.length < batchSize) break
  }
  if (fault !== undefined) throw fault
  return purged
}

async function purge({ metadata, blobs }: CollectNeeds, { storageKey, notes }: RemovableObject): Promise<void> {
  await blobs.remove(storageKey, notes)
  await metadata.garbage.forget(storageKey)
}

/**
 * Looks through the whole blob store for what no row names, and puts it into the trash: what a writer left behind that died
 * before it could note what it had made. Nothing younger than `ageMs` is touched, and nothing is removed here.
 */
export async function sweepStrays(
  { metadata, blobs }: CollectNeeds,
  ageMs: number,
  shouldStop: () => boolean = () => false,
): Promise<number> {
  let trashed = 0
  for await (const strays of blobs.listOlder(ageMs)) {
    if (shouldStop()) break
    if (strays.length === 0) continue
    trashed += await metadata.transaction(async (tables) =>
      (await mayChange(tables)) ? tables.garbage.trashStrays(strays) : 0,
    )
  }
  return trashed
}
