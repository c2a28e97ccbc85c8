import type { DueBlob, Garbage, GarbageAges } from '../ports/garbage.ts'
import type { MetadataStore, Tables } from '../ports/metadata-store.ts'
import type { RepositoryRow } from '../ports/repositories.ts'
import type { RowId } from '../ports/row-id.ts'
import { staysWritable } from './read-only.ts'

// Selects the rows that are not used and removes them. The keys of their objects go to the trash; `garbage.ts` removes
// the bytes.

type Needs = { readonly metadata: Pick<MetadataStore, 'transaction'> }
type Ages = Pick<GarbageAges, 'leaseMs'>

/** How many links one transaction checks. */
const linksAtOnce = 200

/** How many batches of repositories one collection checks. The next collection continues behind them. */
const repositoryBatchesMax = 20

export interface TrashedBlobs {
  readonly blobs: number
  readonly bytes: number
}

/** Each blob has a transaction of its own, so that a push waits for one check at most. */
export async function trashUnusedBlobs(
  needs: Needs,
  { leaseMs }: Ages,
  shouldStop: () => boolean,
): Promise<TrashedBlobs> {
  const trashed = { blobs: 0, bytes: 0 }
  let [queuedFrom, queueEnd] = [0, Number.POSITIVE_INFINITY]
  while (!shouldStop()) {
    const next = await needs.metadata.transaction((tables) => checkNext(tables, leaseMs, queuedFrom))
    if (next === undefined) break
    const { blob } = next
    queuedFrom = blob.queuedAt
    const isLarge = next.outcome === 'has many links'
    const outcome = isLarge ? await checkInBatches(needs, blob, leaseMs, shouldStop) : next.outcome
    if (outcome === 'stopped') break
    if (typeof outcome === 'number') queueEnd = Math.min(queueEnd, outcome)
    if (outcome === 'trashed') {
      trashed.blobs += 1
      trashed.bytes += blob.sizeBytes
    }
    // Blobs that this collection has requeued are for the next one.
    if (queuedFrom >= queueEnd) break
  }
  return trashed
}

/** The result of a check. A number: the blob was requeued, and this is its new place in the queue. */
type Outcome = 'kept' | 'trashed' | number

async function checkNext(
  tables: Tables,
  leaseMs: number,
  queuedFrom: number,
): Promise<{ readonly blob: DueBlob; readonly outcome: Outcome | 'has many links' } | undefined> {
  const { garbage } = tables
  if (!(await staysWritable(tables))) return undefined
  const blob = await garbage.lockNextDue(leaseMs, queuedFrom, linksAtOnce)
  if (blob === undefined) return undefined
  if (blob.isDisabled) return { blob, outcome: await requeue(garbage, blob) }
  if (blob.hasMoreLinks) return { blob, outcome: 'has many links' }
  return { blob, outcome: await checkLocked(garbage, blob, leaseMs) }
}

/** If its place in the queue has changed, another process has checked the blob. */
async function requeue(garbage: Garbage, blob: DueBlob): Promise<number | 'kept'> {
  return (await garbage.requeue(blob)) ?? 'kept'
}

/** A skipped link may be unused after the transaction that holds it. Then the blob is checked again. */
async function checkLocked(garbage: Garbage, blob: DueBlob, leaseMs: number): Promise<Outcome> {
  if (!(await garbage.isInUse(blob, leaseMs))) {
    await garbage.moveToTrash(blob)
    return 'trashed'
  }
  const removed = blob.hasMoreLinks ? undefined : await garbage.removeUnusedLinks(blob, leaseMs, 0, linksAtOnce)
  if (removed?.hasSkipped) return requeue(garbage, blob)
  await garbage.keep(blob)
  return 'kept'
}

/**
 * Checks a blob that many repositories link, such as a base layer. Its links are checked first, in batches, without a
 * lock of the blob. Then the blob is locked and checked. It stays in the queue until the end, so a crash loses nothing.
 * If other transactions hold the blob or a link of it, it is checked again a lease later.
 */
async function checkInBatches(
  { metadata }: Needs,
  blob: DueBlob,
  leaseMs: number,
  shouldStop: () => boolean,
): Promise<Outcome | 'stopped'> {
  let hasSkipped = false
  for (let after: RowId | undefined = 0; after !== undefined; ) {
    if (shouldStop()) return 'stopped'
    const from: RowId = after
    const batch = await metadata.transaction(async (tables) =>
      (await staysWritable(tables)) ? tables.garbage.removeUnusedLinks(blob, leaseMs, from, linksAtOnce) : undefined,
    )
    if (batch === undefined) return 'stopped'
    hasSkipped ||= batch.hasSkipped
    after = batch.next
  }
  return metadata.transaction(async (tables) => {
    if (!(await staysWritable(tables))) return 'stopped'
    const isLocked = !hasSkipped && (await tables.garbage.lockDue(blob))
    return isLocked ? checkLocked(tables.garbage, blob, leaseMs) : requeue(tables.garbage, blob)
  })
}

/** One collection checks a part of the repositories. A mark records where the next one continues, on any server. */
export async function removeEmptyRepositories(
  { metadata }: Needs,
  { leaseMs }: Ages,
  shouldStop: () => boolean,
): Promise<number> {
  let removed = 0
  for (let batches = 0; batches < repositoryBatchesMax && !shouldStop(); batches += 1) {
    const batch = await metadata.transaction(async (tables) => {
      if (!(await staysWritable(tables))) return undefined
      const position = await tables.marks.find('empty-repositories')
      const checked = await tables.garbage.removeEmptyRepositories(leaseMs, parsePosition(position))
      if (checked.next !== undefined) await tables.marks.set('empty-repositories', formatPosition(checked.next))
      else if (position !== undefined) await tables.marks.remove('empty-repositories')
      return checked
    })
    removed += batch?.removed ?? 0
    if (batch?.next === undefined) break
  }
  return removed
}

function formatPosition({ accountId, id }: RepositoryRow): string {
  return `${accountId}/${id}`
}

/** A text that is no position means the beginning. */
function parsePosition(text: string | undefined): RepositoryRow | undefined {
  const [, accountId, id] = /^(\d{1,15})\/(\d{1,15})$/.exec(text ?? '') ?? []
  return accountId === undefined || id === undefined ? undefined : { accountId: Number(accountId), id: Number(id) }
}
