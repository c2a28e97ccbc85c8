import { Unavailable } from '../oci/errors.ts'
import type { BlobStore, RemovableObject } from '../ports/blob-store.ts'
import type { GarbageAges, GarbageForecast } from '../ports/garbage.ts'
import type { MetadataStore } from '../ports/metadata-store.ts'
import { removeEmptyRepositories, takesChanges, trashUnusedBlobs } from './garbage-selection.ts'
import { isReadOnly } from './read-only.ts'

type CollectNeeds = {
  readonly metadata: Pick<MetadataStore, 'garbage' | 'transaction' | 'marks'>
  readonly blobs: Pick<BlobStore, 'remove' | 'listOlderThan'>
}

export interface Collected {
  readonly uploads: number
  readonly blobs: number
  readonly bytes: number
  readonly repositories: number
  readonly purged: number
}

/** An object that could not be removed. Its note stays in the trash, so that a later collection tries again. */
export interface UnremovedObject {
  readonly storageKey: string
  readonly error: unknown
}

/** The collection is done, except for objects that could not be removed. */
export class ObjectsUnremoved extends Unavailable {
  readonly collected: Collected
  readonly count: number
  /** The first of them. */
  readonly kept: readonly UnremovedObject[]

  constructor(collected: Collected, { count, kept }: Pick<Purged, 'count' | 'kept'>) {
    super('the blob store', { cause: kept[0]?.error })
    this.collected = collected
    this.count = count
    this.kept = kept
  }
}

const batchSize = 100

/** As many objects that could not be removed are told of one by one. */
const keptMax = 10

const removalsAtOnce = 8

/**
 * Collects what nobody needs, beside the running registry: no window, no leader, no lock on reads. Rows go first, in
 * transactions that lock a blob and then look whether it is used; its key goes to the trash, and only keys from the trash
 * lose their bytes. Whatever happens in between, a manifest that can be pulled has all its blobs.
 *
 * Objects that cannot be removed do not keep the others; the end is an `ObjectsKept` then.
 *
 * This is the only code that removes bytes. It rests while the store takes no changes: another may name the same bytes then.
 */
export async function collectGarbage(
  needs: CollectNeeds,
  ages: GarbageAges,
  shouldStop: () => boolean = () => false,
): Promise<Collected> {
  const uploads = await expireUploads(needs, ages, shouldStop)
  const buried = await trashUnusedBlobs(needs, ages, shouldStop)
  const repositories = await removeEmptyRepositories(needs, ages, shouldStop)
  const { purged, ...rest } = await purgeTrash(needs, ages, shouldStop)
  const collected = { uploads, ...buried, repositories, purged }
  if (rest.count > 0) throw new ObjectsUnremoved(collected, rest)
  return collected
}

/** What `collectGarbage` would find now; changes nothing. */
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
      (await takesChanges(tables)) ? tables.garbage.expireUploads(ages, batchSize) : 0,
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
  readonly kept: readonly UnremovedObject[]
}

/**
 * Bytes first, note second: a crash between leaves a note of bytes that are gone, and removing them again is no error. An
 * object that cannot be removed keeps its note, and does not keep the others. Several processes share the work: what one
 * has taken, the others pass over.
 */
async function purgeTrash(needs: CollectNeeds, ages: GarbageAges, shouldStop: () => boolean): Promise<Purged> {
  let purged = 0
  let count = 0
  const kept: UnremovedObject[] = []
  let fault: unknown
  while (!shouldStop() && !(await isReadOnly(needs))) {
    const trashed = await needs.metadata.garbage.claimTrashed(ages.quarantineMs, ages.holdMs, batchSize)
    let failed = 0
    const take = (one: RemovableObject) =>
      purge(needs, one).then(
        () => {
          purged += 1
        },
        (error: unknown) => {
          // A fault of anything but the blob store ends the collection.
          if (!(error instanceof Unavailable && error.what === 'the blob store')) fault ??= error
          failed += 1
          if (kept.length < keptMax) kept.push({ storageKey: one.storageKey, error })
        },
      )
    for (let at = 0; at < trashed.length && !shouldStop(); at += removalsAtOnce) {
      await Promise.all(trashed.slice(at, at + removalsAtOnce).map(take))
      if (fault !== undefined) throw fault
    }
    count += failed
    // A store that removes nothing of a whole batch is not asked for the rest as well: there is a next time.
    if (failed === trashed.length || trashed.length < batchSize) break
  }
  return { purged, count, kept }
}

async function purge({ metadata, blobs }: CollectNeeds, { storageKey, notes }: RemovableObject): Promise<void> {
  await blobs.remove(storageKey, notes)
  await metadata.garbage.removeTrashed(storageKey)
}

/**
 * Looks through the whole blob store for what no row names, and puts it into the trash: what a writer left behind that
 * died before it could note what it had made. Nothing younger than `ageMs` is touched, and nothing is removed here.
 */
export async function sweepOrphans(needs: CollectNeeds, ageMs: number): Promise<number> {
  return (await sweep(needs, ageMs, async () => true)).trashed
}

interface Swept {
  readonly trashed: number
  /** Everything was looked at. */
  readonly isWhole: boolean
}

/** Asked at each page, `mayGoOn` can end it. */
async function sweep(needs: CollectNeeds, ageMs: number, mayGoOn: () => Promise<boolean>): Promise<Swept> {
  let trashed = 0
  for await (const strays of needs.blobs.listOlderThan(ageMs)) {
    if (!(await mayGoOn()) || (await isReadOnly(needs))) return { trashed, isWhole: false }
    if (strays.length === 0) continue
    trashed += await needs.metadata.transaction(async (tables) =>
      (await takesChanges(tables)) ? tables.garbage.trashOrphans(strays) : 0,
    )
  }
  return { trashed, isWhole: true }
}

/** Who sweeps has the turn for this long from his last sign of life, and nobody else begins. */
const sweepTurnMs = 1_800_000

/**
 * Sweeps once in each `everyMs`, however many servers ask; undefined where that is not now. There are two turns: only a
 * whole sweep takes the long one. The one of whoever is at work ends soon by itself: a sweep that fails, is stopped or
 * dies is due again then, and not before, because a store in trouble must not be asked again and again.
 */
export async function sweepOrphansOnce(
  needs: CollectNeeds,
  { ageMs, everyMs }: { readonly ageMs: number; readonly everyMs: number },
  prepare: () => Promise<void>,
  shouldStop: () => boolean = () => false,
): Promise<Swept | undefined> {
  const { garbage } = needs.metadata
  const turnMs = Math.min(sweepTurnMs, everyMs)
  // For no time at all: that is a look.
  if (!(await garbage.claimWork('whole sweep', 0))) return undefined
  if (!(await garbage.claimWork('sweep', turnMs))) return undefined
  await prepare()
  const swept = await sweep(needs, ageMs, async () => {
    // Ours still, or again when it is over. If another was quicker, two look through the store: a waste, and no harm.
    await garbage.claimWork('sweep', turnMs)
    return !shouldStop()
  })
  if (swept.isWhole) await garbage.claimWork('whole sweep', everyMs)
  return swept
}
