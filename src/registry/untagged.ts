import type { Digest } from '../oci/digest.ts'
import type { Actor } from '../ports/actor.ts'
import type { GarbageAges } from '../ports/garbage.ts'
import type { MarkName } from '../ports/marks.ts'
import type { MetadataStore, Tables } from '../ports/metadata-store.ts'
import type { RepositoryKey, RepositoryRow } from '../ports/repositories.ts'
import type { RowId } from '../ports/row-id.ts'
import type { DueManifest, UntaggedBatch, UntaggedManifest, UntaggedPosition } from '../ports/untagged.ts'
import { removeManifest } from './manifests.ts'
import { formatPosition, type Page, parsePosition } from './pages.ts'
import { staysWritable } from './read-only.ts'
import { getRepository } from './repositories.ts'

type ListNeeds = { readonly metadata: Pick<MetadataStore, 'repositories' | 'untagged'> }
type RemoveNeeds = { readonly metadata: Pick<MetadataStore, 'transaction'> }
type Ages = Pick<GarbageAges, 'untaggedMs' | 'tagHistoryMs' | 'undeleteMs'>

/** Who removes untagged manifests. */
const collector: Actor = { subject: 'collector' }

/** How many candidates one transaction or one statement looks at. */
const candidatesAtOnce = 200

/** How many batches one collection looks at. The next one continues behind them. */
const batchesMax = 100

/** The untagged manifests of the repository, those that have waited longest first. */
export async function listUntagged(
  { metadata }: ListNeeds,
  repositoryKey: RepositoryKey,
  { after, limit }: { readonly after: UntaggedPosition | undefined; readonly limit: number },
): Promise<Page<UntaggedManifest>> {
  const repository = await getRepository(metadata, repositoryKey)
  const items: UntaggedManifest[] = []
  if (limit === 0) return { items, hasMore: false }
  for (let position = after, isDone = false; !isDone; ) {
    const batch = await metadata.untagged.list(repository, position, candidatesAtOnce)
    items.push(...batch.manifests)
    if (items.length > limit) return { items: items.slice(0, limit), hasMore: true }
    position = batch.next
    isDone = position === undefined
  }
  return { items, hasMore: false }
}

/**
 * When the policy removes the manifest, in milliseconds since 1970. Undefined: never. A manifest that had a tag is kept at
 * least as long as the history of tags, so that the tag can be restored.
 */
export function findRemovalTime(
  { since, wasTagged }: Pick<UntaggedManifest, 'since' | 'wasTagged'>,
  ages: Omit<Ages, 'undeleteMs'>,
): number | undefined {
  return ages.untaggedMs === 0 ? undefined : since + keepMs(wasTagged, ages)
}

function keepMs(wasTagged: boolean, { untaggedMs, tagHistoryMs }: Omit<Ages, 'undeleteMs'>): number {
  return wasTagged ? Math.max(untaggedMs, tagHistoryMs) : untaggedMs
}

/**
 * Removes manifests that have been untagged for long enough, each in a transaction of its own. With `untaggedMs` 0, nothing is
 * removed. Looks at two parts of the candidates, and at each in portions; marks record where the next collection continues, on
 * any server:
 * - those that no collection has looked at, to take candidates off the list that are not untagged,
 * - those that are old enough to be removed.
 */
export async function removeUntagged(needs: RemoveNeeds, ages: Ages, shouldStop: () => boolean): Promise<number> {
  for (let batches = 0; batches < batchesMax && !shouldStop(); batches += 1) {
    const batch = await needs.metadata.transaction(checkNewCandidates)
    if (batch?.next === undefined) break
  }
  return ages.untaggedMs === 0 ? 0 : removeDue(needs, ages, shouldStop)
}

/**
 * New candidates are the youngest, so the mark stays where it is at the end. A transaction that was slow to commit may add a
 * candidate before the mark. If it is not untagged, it stays on the list until it is old enough to be removed.
 */
async function checkNewCandidates(tables: Tables): Promise<UntaggedBatch<DueManifest> | undefined> {
  if (!(await staysWritable(tables))) return undefined
  const batch = await tables.untagged.check(await findPosition(tables, 'untagged-manifests'), candidatesAtOnce)
  if (batch.next !== undefined) await setPosition(tables, 'untagged-manifests', batch.next)
  return batch
}

async function removeDue({ metadata }: RemoveNeeds, ages: Ages, shouldStop: () => boolean): Promise<number> {
  let removed = 0
  for (let batches = 0; batches < batchesMax && !shouldStop(); batches += 1) {
    const batch = await metadata.transaction((tables) => checkOldCandidates(tables, ages))
    const due = (batch?.manifests ?? []).filter(({ ageMs, wasTagged }) => ageMs >= keepMs(wasTagged, ages))
    for (const manifest of due) {
      if (shouldStop()) return removed
      if (await metadata.transaction((tables) => removeIfUntagged(tables, manifest, ages))) removed += 1
    }
    if (batch?.next === undefined) break
  }
  return removed
}

/** At the first manifest that is too young, the round ends, and the next one begins with the oldest. */
async function checkOldCandidates(tables: Tables, ages: Ages): Promise<UntaggedBatch<DueManifest> | undefined> {
  if (!(await staysWritable(tables))) return undefined
  const position = await findPosition(tables, 'old-untagged-manifests')
  const { manifests, next } = await tables.untagged.check(position, candidatesAtOnce)
  const isEnd = next === undefined || manifests.some(({ ageMs }) => ageMs < ages.untaggedMs)
  if (!isEnd) await setPosition(tables, 'old-untagged-manifests', next)
  else if (position !== undefined) await tables.marks.remove('old-untagged-manifests')
  return { manifests, next: isEnd ? undefined : next }
}

type PositionMark = Extract<MarkName, 'untagged-manifests' | 'old-untagged-manifests'>

async function findPosition({ marks }: Tables, mark: PositionMark): Promise<UntaggedPosition | undefined> {
  return parsePosition(await marks.find(mark), toUntaggedPosition)
}

async function setPosition({ marks }: Tables, mark: PositionMark, { since, id }: UntaggedPosition): Promise<void> {
  await marks.set(mark, formatPosition(since, id))
}

/**
 * Removes untagged manifests of one repository, whose account has an age of its own for them. `now` is a time by the clock of
 * the metadata store.
 */
export async function removeUntaggedOf(
  { metadata }: { readonly metadata: Pick<MetadataStore, 'untagged' | 'transaction'> },
  repository: RepositoryRow,
  ages: Ages,
  now: number,
  shouldStop: () => boolean,
): Promise<number> {
  let removed = 0
  for (let position: UntaggedPosition | undefined; ; ) {
    const { manifests, next } = await metadata.untagged.list(repository, position, candidatesAtOnce)
    for (const { id, since, wasTagged } of manifests) {
      if (shouldStop() || now - since < ages.untaggedMs) return removed
      const manifest = { repository, id, since, wasTagged, ageMs: now - since }
      if (await metadata.transaction((tables) => removeIfUntagged(tables, manifest, ages))) removed += 1
    }
    if (next === undefined) return removed
    position = next
  }
}

/** The age that the retention policy of the account sets has precedence. */
async function removeIfUntagged(tables: Tables, manifest: DueManifest, ages: Ages): Promise<boolean> {
  if (!(await staysWritable(tables))) return false
  const { repository, id } = manifest
  const account = await tables.accounts.findLocked(repository.accountId)
  if (account?.state !== 'enabled') return false
  const untaggedMs = account.untaggedMs ?? ages.untaggedMs
  if (untaggedMs === 0 || manifest.ageMs < keepMs(manifest.wasTagged, { ...ages, untaggedMs })) return false
  await tables.repositories.lockForRemoval(repository, 1)
  const digest = await tables.untagged.lock(manifest)
  if (digest === undefined) return false
  const deletion = { actor: collector, cause: 'untagged', tags: [] } as const
  await removeManifest(tables, repository, { id, digest: digest as Digest }, deletion, ages)
  return true
}

export function toUntaggedPosition(since: number, id: RowId): UntaggedPosition {
  return { since, id }
}
