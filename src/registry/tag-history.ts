import type { Digest } from '../oci/digest.ts'
import { RegistryRefusal } from '../oci/errors.ts'
import type { Tag } from '../oci/names.ts'
import type { Actor } from '../ports/actor.ts'
import type { GarbageAges } from '../ports/garbage.ts'
import type { MetadataStore, Tables } from '../ports/metadata-store.ts'
import type { RepositoryKey, RepositoryRow } from '../ports/repositories.ts'
import type { RowId } from '../ports/row-id.ts'
import type { HistoryPosition, TagMove } from '../ports/tag-history.ts'
import { checkStillOpen } from './accounts.ts'
import { pointTag } from './immutable-tags.ts'
import { formatPosition, type Page, parsePosition, toPage } from './pages.ts'
import { staysWritable } from './read-only.ts'
import { getRepository } from './repositories.ts'
import type { RegistrySettings } from './settings.ts'

type Settings = Pick<RegistrySettings, 'tagHistoryMs'>
type ListNeeds = { readonly metadata: Pick<MetadataStore, 'repositories' | 'tagHistory'> }
type ReadNeeds = {
  readonly metadata: Pick<MetadataStore, 'repositories' | 'manifests' | 'tagHistory' | 'now'>
  readonly settings: Settings
}
type RestoreNeeds = {
  readonly metadata: Pick<MetadataStore, 'transaction' | 'now'>
  readonly settings: Settings
}

/** Where `restoreTag` points the tag: to a manifest, to where it pointed at a time, or to where it was before its last move. */
export type RestoreTarget = { readonly digest: Digest } | { readonly time: number } | 'before the last move'

/** The moves of the tag, the newest first. Empty if the tag never existed, or never moved since the history began. */
export async function listTagMoves(
  { metadata }: ListNeeds,
  repositoryKey: RepositoryKey,
  tag: Tag,
  { before, limit }: { readonly before: HistoryPosition | undefined; readonly limit: number },
): Promise<Page<TagMove>> {
  const repository = await getRepository(metadata, repositoryKey)
  if (limit === 0) return { items: [], hasMore: false }
  return toPage(await metadata.tagHistory.list(repository, tag, before, limit + 1), limit)
}

/**
 * The digest to which the tag points, or pointed at `time`. Refuses if the tag did not exist then, or if the history does not
 * reach back to that time.
 */
export async function getTagDigest(
  { metadata, settings }: ReadNeeds,
  repositoryKey: RepositoryKey,
  tag: Tag,
  time: number | undefined,
): Promise<Digest> {
  const repository = await getRepository(metadata, repositoryKey)
  if (time === undefined) return getPresent(metadata, repositoryKey, tag)
  const oldest = (await metadata.now()) - settings.tagHistoryMs
  return resolveAt(metadata, repositoryKey, repository, tag, { time, oldest })
}

/**
 * Points the tag to a manifest that it had before, also if the tag was deleted. The manifest must still exist. The restore
 * is a move like any other, so it can be undone too.
 */
export async function restoreTag(
  { metadata, settings }: RestoreNeeds,
  repositoryKey: RepositoryKey,
  tag: Tag,
  target: RestoreTarget,
  actor: Actor,
): Promise<Digest> {
  const oldest = (await metadata.now()) - settings.tagHistoryMs
  return metadata.transaction(async (tables) => {
    const account = await checkStillOpen(tables, repositoryKey.accountId)
    const repository = await getRepository(tables, repositoryKey)
    const digest = await resolveTarget(tables, repositoryKey, repository, tag, target, oldest)
    const id = await tables.manifests.findLocked(repository, digest)
    if (id === undefined) throw new RegistryRefusal('manifest-unknown', { digest })
    await pointTag(tables, { account, repositoryKey, repository }, tag, id, { actor, cause: 'restore' })
    return digest
  })
}

async function resolveTarget(
  tables: Pick<Tables, 'manifests' | 'tagHistory'>,
  repositoryKey: RepositoryKey,
  repository: RepositoryRow,
  tag: Tag,
  target: RestoreTarget,
  oldest: number,
): Promise<Digest> {
  if (target === 'before the last move') {
    const [last] = await tables.tagHistory.list(repository, tag, undefined, 1)
    if (last?.from === undefined) throw new RegistryRefusal('tag-history-unknown', { tag })
    return last.from
  }
  if ('digest' in target) return target.digest
  return resolveAt(tables, repositoryKey, repository, tag, { time: target.time, oldest })
}

/**
 * The last move until then tells where the tag pointed. If there is none, the first move after it tells where the tag
 * pointed before. If there is none either, the tag has not moved since the history began.
 */
async function resolveAt(
  tables: Pick<Tables, 'manifests' | 'tagHistory'>,
  repositoryKey: RepositoryKey,
  repository: RepositoryRow,
  tag: Tag,
  { time, oldest }: { readonly time: number; readonly oldest: number },
): Promise<Digest> {
  const until = await tables.tagHistory.findLastUntil(repository, tag, time)
  if (until !== undefined) return until.to ?? refuseAbsent(tag)
  if (time < oldest) throw new RegistryRefusal('tag-history-unknown', { tag })
  const after = await tables.tagHistory.findFirstAfter(repository, tag, time)
  if (after !== undefined) return after.from ?? refuseAbsent(tag)
  return getPresent(tables, repositoryKey, tag)
}

async function getPresent(
  { manifests }: Pick<Tables, 'manifests'>,
  repositoryKey: RepositoryKey,
  tag: Tag,
): Promise<Digest> {
  return (await manifests.describe(repositoryKey, { tag }))?.digest ?? refuseAbsent(tag)
}

function refuseAbsent(tag: Tag): never {
  throw new RegistryRefusal('manifest-unknown', { tag })
}

/** How many moves one transaction looks at, and how many transactions one collection has. */
const movesAtOnce = 200
const batchesMax = 500

/**
 * Removes moves that are older than `tagHistoryMs` and not needed to tell where a tag pointed since then. One collection
 * looks at a part of the history. A mark records where the next one continues, on any server.
 */
export async function removeOldTagMoves(
  { metadata }: { readonly metadata: Pick<MetadataStore, 'transaction'> },
  { tagHistoryMs }: Pick<GarbageAges, 'tagHistoryMs'>,
  shouldStop: () => boolean,
): Promise<number> {
  let removed = 0
  for (let batches = 0; batches < batchesMax && !shouldStop(); batches += 1) {
    const batch = await metadata.transaction(async (tables) => {
      if (!(await staysWritable(tables))) return undefined
      const position = parsePosition(await tables.marks.find('tag-history'), toHistoryPosition)
      const checked = await tables.tagHistory.removeSuperseded(tagHistoryMs, position, movesAtOnce)
      if (checked.next !== undefined)
        await tables.marks.set('tag-history', formatPosition(checked.next.movedAt, checked.next.id))
      return checked
    })
    removed += batch?.removed ?? 0
    if (batch?.next === undefined) break
  }
  return removed
}

export function toHistoryPosition(movedAt: number, id: RowId): HistoryPosition {
  return { movedAt, id }
}
