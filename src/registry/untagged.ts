import type { Digest } from '../oci/digest.ts'
import type { Actor } from '../ports/actor.ts'
import type { GarbageAges } from '../ports/garbage.ts'
import type { MetadataStore, Tables } from '../ports/metadata-store.ts'
import type { RepositoryKey } from '../ports/repositories.ts'
import type { RowId } from '../ports/row-id.ts'
import type { DueManifest, UntaggedManifest, UntaggedPosition } from '../ports/untagged.ts'
import { removeManifest } from './manifests.ts'
import { formatPosition, type Page, parsePosition } from './pages.ts'
import { staysWritable } from './read-only.ts'
import { getRepository } from './repositories.ts'

type ListNeeds = { readonly metadata: Pick<MetadataStore, 'repositories' | 'untagged'> }
type RemoveNeeds = { readonly metadata: Pick<MetadataStore, 'transaction'> }
type Ages = Pick<GarbageAges, 'untaggedMs' | 'tagHistoryMs'>

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
  ages: Ages,
): number | undefined {
  return ages.untaggedMs === 0 ? undefined : since + keepMs(wasTagged, ages)
}

function keepMs(wasTagged: boolean, { untaggedMs, tagHistoryMs }: Ages): number {
  return wasTagged ? Math.max(untaggedMs, tagHistoryMs) : untaggedMs
}

/**
 * Removes manifests that have been untagged for long enough, each in a transaction of its own. One collection looks at a part
 * of the candidates. A mark records where the next one continues, on any server. With `untaggedMs` 0, nothing is removed.
 */
export async function removeUntagged(
  { metadata }: RemoveNeeds,
  ages: Ages,
  shouldStop: () => boolean,
): Promise<number> {
  let removed = 0
  for (let batches = 0; batches < batchesMax && !shouldStop(); batches += 1) {
    const batch = await metadata.transaction(async (tables) => {
      if (!(await staysWritable(tables))) return undefined
      const position = parsePosition(await tables.marks.find('untagged-manifests'), toUntaggedPosition)
      const checked = await tables.untagged.check(position, candidatesAtOnce)
      if (checked.next !== undefined)
        await tables.marks.set('untagged-manifests', formatPosition(checked.next.since, checked.next.id))
      else if (position !== undefined) await tables.marks.remove('untagged-manifests')
      return checked
    })
    const due = (batch?.manifests ?? []).filter(
      ({ ageMs, wasTagged }) => ages.untaggedMs > 0 && ageMs >= keepMs(wasTagged, ages),
    )
    for (const manifest of due) {
      if (shouldStop()) return removed
      if (await metadata.transaction((tables) => removeIfUntagged(tables, manifest))) removed += 1
    }
    if (batch?.next === undefined) break
  }
  return removed
}

async function removeIfUntagged(tables: Tables, manifest: DueManifest): Promise<boolean> {
  if (!(await staysWritable(tables))) return false
  const { repository, id } = manifest
  const account = await tables.accounts.findLocked(repository.accountId)
  if (account?.state !== 'enabled') return false
  const digest = await tables.untagged.lock(manifest)
  if (digest === undefined) return false
  await removeManifest(tables, repository, { id, digest: digest as Digest }, collector)
  return true
}

export function toUntaggedPosition(since: number, id: RowId): UntaggedPosition {
  return { since, id }
}
