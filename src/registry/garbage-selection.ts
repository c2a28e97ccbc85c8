import type { DueBlob, Garbage, GarbageAges } from '../ports/garbage.ts'
import type { MetadataStore, Tables } from '../ports/metadata-store.ts'
import type { RepositoryRow } from '../ports/repositories.ts'
import type { RowId } from '../ports/row-id.ts'

// The collector's work on rows: what no longer has one is in the trash, and loses its bytes in garbage.ts.

type Needs = { readonly metadata: Pick<MetadataStore, 'transaction'> }
type Ages = Pick<GarbageAges, 'leaseMs'>

/** How many links one transaction looks at. */
const linksAtOnce = 200

/** How many looks at repositories one collection takes; the next goes on from there. */
const repositoryLooks = 20

/** Until the transaction ends. */
export async function takesChanges({ marks }: Pick<Tables, 'marks'>): Promise<boolean> {
  return (await marks.findLocked('read-only')) === undefined
}

export interface TrashedBlobs {
  readonly blobs: number
  readonly bytes: number
}

/** One blob a transaction, so that nobody who pushes waits for longer than one look. */
export async function trashUnusedBlobs(
  needs: Needs,
  { leaseMs }: Ages,
  shouldStop: () => boolean,
): Promise<TrashedBlobs> {
  const buried = { blobs: 0, bytes: 0 }
  let [queuedFrom, queueEnd] = [0, Number.POSITIVE_INFINITY]
  while (!shouldStop()) {
    const look = await needs.metadata.transaction((tables) => lookAtNext(tables, leaseMs, queuedFrom))
    if (look === undefined) break
    const { blob } = look
    queuedFrom = blob.queuedAt
    const isLarge = look.outcome === 'has many links'
    const outcome = isLarge ? await lookByPortions(needs, blob, leaseMs, shouldStop) : look.outcome
    if (outcome === 'stopped') break
    if (typeof outcome === 'number') queueEnd = Math.min(queueEnd, outcome)
    if (outcome === 'buried') {
      buried.blobs += 1
      buried.bytes += blob.sizeBytes
    }
    // What this collection itself has put there is for the next one.
    if (queuedFrom >= queueEnd) break
  }
  return buried
}

/** What became of the blob; a number is its new place in the queue, where it was sent for a later look. */
type Outcome = 'kept' | 'buried' | number

async function lookAtNext(
  tables: Tables,
  leaseMs: number,
  queuedFrom: number,
): Promise<{ readonly blob: DueBlob; readonly outcome: Outcome | 'has many links' } | undefined> {
  const { garbage } = tables
  if (!(await takesChanges(tables))) return undefined
  const blob = await garbage.lockNextDue(leaseMs, queuedFrom, linksAtOnce)
  if (blob === undefined) return undefined
  if (blob.isDisabled) return { blob, outcome: await putOff(garbage, blob) }
  if (blob.hasMoreLinks) return { blob, outcome: 'has many links' }
  return { blob, outcome: await settle(garbage, blob, leaseMs) }
}

/** One that is queued no more as it was, somebody else has looked at. */
async function putOff(garbage: Garbage, blob: DueBlob): Promise<number | 'kept'> {
  return (await garbage.requeue(blob)) ?? 'kept'
}

/** A link that somebody holds may be left unused by whoever holds it: then the blob is looked at again. */
async function settle(garbage: Garbage, blob: DueBlob, leaseMs: number): Promise<Outcome> {
  if (!(await garbage.isInUse(blob, leaseMs))) {
    await garbage.moveToTrash(blob)
    return 'buried'
  }
  const dropped = blob.hasMoreLinks ? undefined : await garbage.removeUnusedLinks(blob, leaseMs, 0, linksAtOnce)
  if (dropped?.hasSkipped) return putOff(garbage, blob)
  await garbage.keep(blob)
  return 'kept'
}

/**
 * Half of an account may link a base layer. Its links are looked at first, some in a transaction, while the blob itself can
 * be used; only then is it locked and judged. It stays in the queue until that is done, so a crash leaves nothing behind.
 * One that is in use just now, or a link of which is, is looked at again a lease later.
 */
async function lookByPortions(
  { metadata }: Needs,
  blob: DueBlob,
  leaseMs: number,
  shouldStop: () => boolean,
): Promise<Outcome | 'stopped'> {
  let hasPassedOver = false
  for (let after: RowId | undefined = 0; after !== undefined; ) {
    if (shouldStop()) return 'stopped'
    const from: RowId = after
    const dropped = await metadata.transaction(async (tables) =>
      (await takesChanges(tables)) ? tables.garbage.removeUnusedLinks(blob, leaseMs, from, linksAtOnce) : undefined,
    )
    if (dropped === undefined) return 'stopped'
    hasPassedOver ||= dropped.hasSkipped
    after = dropped.next
  }
  return metadata.transaction(async (tables) => {
    if (!(await takesChanges(tables))) return 'stopped'
    const canJudge = !hasPassedOver && (await tables.garbage.lockDue(blob))
    return canJudge ? settle(tables.garbage, blob, leaseMs) : putOff(tables.garbage, blob)
  })
}

/** Some of them a transaction, and not all of them a collection: where it ended is noted for whichever server goes on. */
export async function removeEmptyRepositories(
  { metadata }: Needs,
  { leaseMs }: Ages,
  shouldStop: () => boolean,
): Promise<number> {
  let removed = 0
  for (let looks = 0; looks < repositoryLooks && !shouldStop(); looks += 1) {
    const batch = await metadata.transaction(async (tables) => {
      if (!(await takesChanges(tables))) return undefined
      const noted = await tables.marks.find('empty-repositories')
      const seen = await tables.garbage.removeEmptyRepositories(leaseMs, parsePosition(noted))
      if (seen.next !== undefined) await tables.marks.set('empty-repositories', formatPosition(seen.next))
      else if (noted !== undefined) await tables.marks.remove('empty-repositories')
      return seen
    })
    removed += batch?.removed ?? 0
    if (batch?.next === undefined) break
  }
  return removed
}

function formatPosition({ accountId, id }: RepositoryRow): string {
  return `${accountId}/${id}`
}

/** Whatever is not a position is the beginning. */
function parsePosition(text: string | undefined): RepositoryRow | undefined {
  const [, accountId, id] = /^(\d{1,15})\/(\d{1,15})$/.exec(text ?? '') ?? []
  return accountId === undefined || id === undefined ? undefined : { accountId: Number(accountId), id: Number(id) }
}
