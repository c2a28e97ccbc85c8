import { Unavailable } from '../oci/errors.ts'
import type { BlobStore, RemovableObject } from '../ports/blob-store.ts'
import type { GarbageAges, GarbageForecast } from '../ports/garbage.ts'
import type { MetadataStore } from '../ports/metadata-store.ts'
import { expireDeletedManifests } from './deleted-manifests.ts'
import { removeEmptyRepositories, trashUnusedBlobs } from './garbage-selection.ts'
import { isReadOnly, staysWritable } from './read-only.ts'
import { removeOldTagMoves } from './tag-history.ts'
import { removeUntagged } from './untagged.ts'
import { foldUsage } from './usage.ts'

type CollectNeeds = {
  readonly metadata: Pick<MetadataStore, 'garbage' | 'transaction' | 'marks' | 'usage'>
  readonly blobs: Pick<BlobStore, 'remove' | 'listOlderThan'>
}

export interface Collected {
  readonly uploads: number
  readonly blobs: number
  readonly bytes: number
  /** Removed manifests without a tag. */
  readonly untagged: number
  /** Manifests that can no longer be undeleted. */
  readonly deleted: number
  /** Removed moves of tags. */
  readonly tagMoves: number
  readonly repositories: number
  readonly purged: number
}

/** An object that could not be removed. It stays in the trash, and a later collection tries again. */
export interface UnremovedObject {
  readonly storageKey: string
  readonly error: unknown
}

/** The collection has ended, but some objects could not be removed. */
export class ObjectsUnremoved extends Unavailable {
  readonly collected: Collected
  readonly count: number
  /** The first of them. */
  readonly failures: readonly UnremovedObject[]

  constructor(collected: Collected, { count, failures }: Pick<Purged, 'count' | 'failures'>) {
    super('blob-store', { cause: failures[0]?.error })
    this.collected = collected
    this.count = count
    this.failures = failures
  }
}

const batchSize = 100

/** How many objects that could not be removed are listed. */
const failuresMax = 10

const removalsAtOnce = 8

/**
 * Removes content that is not used, while the registry serves requests. Reads are not locked, and there is no leader:
 * several processes may collect at once. Rows go first, in transactions that lock a blob and then check that it is not
 * used. Its key goes to the trash. After the quarantine, the bytes of trashed keys are removed. So a manifest that can
 * be pulled always has all its blobs.
 *
 * An object that cannot be removed does not stop the removal of others; in the end this rejects with
 * `ObjectsUnremoved`.
 *
 * Only this file removes bytes that a row may have named. It does nothing while the store takes no changes, because
 * after a move the rows of another store may name the same bytes. There is one exception: the writer of an upload in S3
 * removes a replaced tail (the last bytes, stored as an object of their own) after the row names its replacement.
 */
export async function collectGarbage(
  needs: CollectNeeds,
  ages: GarbageAges,
  shouldStop: () => boolean = () => false,
): Promise<Collected> {
  const uploads = await expireUploads(needs, ages, shouldStop)
  const untagged = await removeUntagged(needs, ages, shouldStop)
  const deleted = await expireDeletedManifests(needs, ages, shouldStop)
  const trashed = await trashUnusedBlobs(needs, ages, shouldStop)
  const tagMoves = await removeOldTagMoves(needs, ages, shouldStop)
  // A repository whose changes are not folded is not removed.
  await foldUsage(needs, shouldStop)
  const repositories = await removeEmptyRepositories(needs, ages, shouldStop)
  const { purged, ...rest } = await purgeTrash(needs, ages, shouldStop)
  const collected = { uploads, untagged, deleted, ...trashed, tagMoves, repositories, purged }
  if (rest.count > 0) throw new ObjectsUnremoved(collected, rest)
  return collected
}

/** What `collectGarbage` would remove now. Changes nothing. */
export function forecastGarbage(
  { metadata }: Pick<CollectNeeds, 'metadata'>,
  ages: GarbageAges,
): Promise<GarbageForecast> {
  return metadata.garbage.forecast(ages)
}

async function expireUploads(needs: CollectNeeds, ages: GarbageAges, shouldStop: () => boolean): Promise<number> {
  let expired = 0
  while (!shouldStop()) {
    const count = await needs.metadata.transaction(async (tables) =>
      (await staysWritable(tables)) ? tables.garbage.expireUploads(ages, batchSize) : 0,
    )
    expired += count
    if (count < batchSize) break
  }
  return expired
}

interface Purged {
  readonly purged: number
  /** How many objects could not be removed. */
  readonly count: number
  readonly failures: readonly UnremovedObject[]
}

/**
 * Removes the bytes first and the row of the trash second. After a crash in between, the next collection removes the
 * bytes again, which is no error. Several processes share the work: each claims a batch.
 */
async function purgeTrash(needs: CollectNeeds, ages: GarbageAges, shouldStop: () => boolean): Promise<Purged> {
  let purged = 0
  let failureCount = 0
  const failures: UnremovedObject[] = []
  let fault: unknown
  while (!shouldStop() && !(await isReadOnly(needs))) {
    const claimed = await needs.metadata.garbage.claimTrashed(ages.quarantineMs, ages.holdMs, batchSize)
    let failed = 0
    const take = (one: RemovableObject) =>
      purge(needs, one).then(
        () => {
          purged += 1
        },
        (error: unknown) => {
          // A fault of anything but the blob store ends the collection.
          if (!(error instanceof Unavailable && error.dependency === 'blob-store')) fault ??= error
          failed += 1
          if (failures.length < failuresMax) failures.push({ storageKey: one.storageKey, error })
        },
      )
    for (let at = 0; at < claimed.length && !shouldStop(); at += removalsAtOnce) {
      await Promise.all(claimed.slice(at, at + removalsAtOnce).map(take))
      if (fault !== undefined) throw fault
    }
    failureCount += failed
    // If a whole batch fails, the store is probably unavailable. The next collection tries again.
    if (failed === claimed.length || claimed.length < batchSize) break
  }
  return { purged, count: failureCount, failures }
}

async function purge({ metadata, blobs }: CollectNeeds, { storageKey, notes }: RemovableObject): Promise<void> {
  await blobs.remove(storageKey, notes)
  await metadata.garbage.removeTrashed(storageKey)
}

/**
 * Searches the whole blob store for orphaned objects, which no row names, and puts them into the trash. A writer leaves
 * them if it dies before it records what it has created. Objects younger than `ageMs` are skipped. Bytes are not
 * removed here.
 */
export async function sweepOrphans(needs: CollectNeeds, ageMs: number): Promise<number> {
  return (await sweep(needs, ageMs, async () => true)).trashed
}

interface Swept {
  readonly trashed: number
  /** Whether the sweep reached the end of the store. */
  readonly isWhole: boolean
}

/** Calls `mayGoOn` before each page. */
async function sweep(needs: CollectNeeds, ageMs: number, mayGoOn: () => Promise<boolean>): Promise<Swept> {
  let trashed = 0
  for await (const orphans of needs.blobs.listOlderThan(ageMs)) {
    if (!(await mayGoOn()) || (await isReadOnly(needs))) return { trashed, isWhole: false }
    if (orphans.length === 0) continue
    trashed += await needs.metadata.transaction(async (tables) =>
      (await staysWritable(tables)) ? tables.garbage.trashOrphans(orphans) : 0,
    )
  }
  return { trashed, isWhole: true }
}

/** How long after the last page of a running sweep no other process starts one. */
const sweepClaimMs = 1_800_000

/**
 * Sweeps once in each `everyMs`, however many servers call this. Undefined if no sweep is due. There are two claims:
 * - `sweep` is short. The running sweep claims it again at each page. If that sweep ends early, for any reason, the
 *   next one starts when this claim is over. It does not start earlier, because the store may be unavailable.
 * - `whole sweep` lasts for `everyMs`. Only a sweep that reached the end of the store claims it.
 */
export async function sweepOrphansOnce(
  needs: CollectNeeds,
  { ageMs, everyMs }: { readonly ageMs: number; readonly everyMs: number },
  prepare: () => Promise<void>,
  shouldStop: () => boolean = () => false,
): Promise<Swept | undefined> {
  const { garbage } = needs.metadata
  const claimMs = Math.min(sweepClaimMs, everyMs)
  // With a duration of 0, `claimWork` only tests whether a sweep is due.
  if (!(await garbage.claimWork('whole sweep', 0))) return undefined
  if (!(await garbage.claimWork('sweep', claimMs))) return undefined
  await prepare()
  const swept = await sweep(needs, ageMs, async () => {
    // Claims again if the claim is over. If another process has claimed it first, two sweeps run, which is harmless.
    await garbage.claimWork('sweep', claimMs)
    return !shouldStop()
  })
  if (swept.isWhole) await garbage.claimWork('whole sweep', everyMs)
  return swept
}
