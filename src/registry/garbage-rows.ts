import type { DueBlob, Garbage, GarbageAges } from '../ports/garbage.ts'
import type { MetadataStore, Tables } from '../ports/metadata-store.ts'
import type { RepositoryRow } from '../ports/repositories.ts'
import type { RowId } from '../ports/row-id.ts'

// The collector's work on rows: what no longer has one is in the trash, and loses its bytes in garbage.ts.

type Needs = { readonly metadata: Pick<MetadataStore, 'transaction'> }
type Ages = Pick<GarbageAges, 'leaseMs'>

/** How many links one transaction looks at, and how many places of the queue. */
const linksAtOnce = 200
const looksAtOnce = 100

/** How many looks at repositories one collection takes; the next goes on from there. */
const repositoryLooks = 20

/** Until the transaction ends. */
export async function mayChange({ marks }: Pick<Tables, 'marks'>): Promise<boolean> {
  return (await marks.findLocked('read-only')) === undefined
}

export interface Buried {
  readonly blobs: number
  readonly bytes: number
}

/** One blob a transaction, so that nobody who pushes waits for longer than one look. */
export async function buryBlobs(needs: Needs, { leaseMs }: Ages, shouldStop: () => boolean): Promise<Buried> {
  const buried = { blobs: 0, bytes: 0 }
  let [queuedFrom, queueEnd] = [0, Number.POSITIVE_INFINITY]
  while (!shouldStop()) {
    const look = await needs.metadata.transaction((tables) => lookAtNext(tables, leaseMs, queuedFrom))
    if (look === undefined) break
    const { blob } = look
    queuedFrom = blob.queuedAt
    let { outcome } = look
    if (outcome === 'has many links') {
      outcome = await lookByPortions(needs, blob, leaseMs, shouldStop)
      // Somebody is using it: it waits for the next collection, and so does what was queued in the same millisecond.
      if (outcome === 'left') queuedFrom += 1
    }
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

/** As of which moment the queue holds again what was put off, or what became of the blob. */
type Outcome = 'kept' | 'buried' | 'left' | 'has many links' | number

async function lookAtNext(
  tables: Tables,
  leaseMs: number,
  queuedFrom: number,
): Promise<{ readonly blob: DueBlob; readonly outcome: Outcome } | undefined> {
  const { garbage } = tables
  if (!(await mayChange(tables))) return undefined
  const blob = await garbage.lockNextDue(leaseMs, queuedFrom, linksAtOnce)
  if (blob === undefined) return undefined
  if (blob.isDisabled) return { blob, outcome: await garbage.putOffDisabled(leaseMs, blob.queuedAt, looksAtOnce) }
  if (blob.hasMoreLinks) return { blob, outcome: 'has many links' }
  return { blob, outcome: await settle(garbage, blob, leaseMs) }
}

async function settle(garbage: Garbage, blob: DueBlob, leaseMs: number): Promise<'kept' | 'buried'> {
  if (!(await garbage.isLive(blob, leaseMs))) {
    await garbage.bury(blob)
    return 'buried'
  }
  if (!blob.hasMoreLinks) await garbage.dropUnusedLinks(blob, leaseMs, 0, linksAtOnce)
  await garbage.keep(blob)
  return 'kept'
}

/**
 * Half of an account may link a base layer. Its links are looked at first, some in a transaction, while the blob itself can
 * be used; only then is it locked and judged. It stays in the queue until that is done, so a crash leaves nothing behind.
 */
async function lookByPortions(
  { metadata }: Needs,
  blob: DueBlob,
  leaseMs: number,
  shouldStop: () => boolean,
): Promise<'kept' | 'buried' | 'left'> {
  for (let after: RowId | undefined = 0; after !== undefined; ) {
    if (shouldStop()) return 'left'
    const from: RowId = after
    after = await metadata.transaction(async (tables) =>
      (await mayChange(tables)) ? tables.garbage.dropUnusedLinks(blob, leaseMs, from, linksAtOnce) : undefined,
    )
  }
  return metadata.transaction(async (tables) => {
    const isOurs = (await mayChange(tables)) && (await tables.garbage.lockDue(blob))
    return isOurs ? settle(tables.garbage, blob, leaseMs) : 'left'
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
      if (!(await mayChange(tables))) return undefined
      const noted = await tables.marks.find('empty-repositories')
      const seen = await tables.garbage.removeEmptyRepositories(leaseMs, parsePosition(noted))
      if (seen.next !== undefined) await tables.marks.put('empty-repositories', formatPosition(seen.next))
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
