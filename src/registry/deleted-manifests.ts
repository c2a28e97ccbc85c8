import type { Digest } from '../oci/digest.ts'
import { type Refusal, RegistryRefusal } from '../oci/errors.ts'
import type { Tag } from '../oci/names.ts'
import type { Actor } from '../ports/actor.ts'
import type { DeletedContent, DeletedManifest, DeletedPosition } from '../ports/deleted-manifests.ts'
import type { DiskSpace } from '../ports/disk-space.ts'
import type { GarbageAges } from '../ports/garbage.ts'
import type { ManifestEntry } from '../ports/manifests.ts'
import type { MetadataStore, Tables } from '../ports/metadata-store.ts'
import type { RepositoryKey, RepositoryRow } from '../ports/repositories.ts'
import type { RowId } from '../ports/row-id.ts'
import { checkStillOpen } from './accounts.ts'
import { storeManifest } from './manifest-push.ts'
import { formatPosition, type Page, parsePosition, toPage } from './pages.ts'
import { staysWritable } from './read-only.ts'
import { getRepository } from './repositories.ts'
import type { RegistrySettings } from './settings.ts'

type ListNeeds = { readonly metadata: Pick<MetadataStore, 'repositories' | 'deletedManifests'> }
type ChangeNeeds = { readonly metadata: Pick<MetadataStore, 'transaction'> }
type UndeleteNeeds = ChangeNeeds & {
  readonly disk: Pick<DiskSpace, 'isLow'>
  readonly settings: Pick<RegistrySettings, 'missingContent'>
}
type UndeleteAllNeeds = ListNeeds &
  UndeleteNeeds & {
    readonly metadata: Pick<MetadataStore, 'transaction' | 'repositories' | 'deletedManifests'>
  }

/** What an undeletion brought back. */
export interface Undeleted {
  /** The manifest, and before it those that it lists and that were deleted too. */
  readonly manifests: readonly Digest[]
  /** The tags that point to them again. */
  readonly tags: readonly Tag[]
  /** Tags of the deletion that exist again, and were left as they are. */
  readonly keptTags: readonly Tag[]
}

/** The result of `undeleteRepository`. */
export interface RepositoryUndeleted extends Undeleted {
  /** Manifests that could not be brought back, because content that they name is missing. */
  readonly refused: readonly Digest[]
  /** Whether a repetition brings back more. */
  readonly hasMore: boolean
}

/** The manifests that can be undeleted, the last deletions first. */
export async function listDeletedManifests(
  { metadata }: ListNeeds,
  repositoryKey: RepositoryKey,
  { before, limit }: { readonly before: DeletedPosition | undefined; readonly limit: number },
): Promise<Page<DeletedManifest>> {
  const repository = await getRepository(metadata, repositoryKey)
  if (limit === 0) return { items: [], hasMore: false }
  return toPage(await metadata.deletedManifests.list(repository, before, limit + 1), limit)
}

/**
 * Brings a deleted manifest back, with those of its tags that do not exist now. If it is an index, the manifests that it lists
 * and that were deleted too come back before it.
 */
export async function undeleteManifest(
  { metadata, disk, settings }: UndeleteNeeds,
  repositoryKey: RepositoryKey,
  digest: Digest,
  actor: Actor,
): Promise<Undeleted> {
  if (disk.isLow()) throw new RegistryRefusal('disk-low')
  return metadata.transaction(async (tables) => {
    await checkStillOpen(tables, repositoryKey.accountId)
    const repository = await getRepository(tables, repositoryKey)
    const content = await tables.deletedManifests.findLocked(repository, digest)
    if (content === undefined) throw new RegistryRefusal('manifest-unknown', { digest })
    const undeletion = new Undeletion(tables, repository, settings, actor)
    await undeletion.bringBack(content, 0)
    return undeletion.result
  })
}

/** How many manifests that indexes list one undeletion brings back, and how deep such indexes may be nested. */
const childrenMax = 1_000
const depthMax = 4

/** One transaction that brings back a manifest and those that it lists. */
class Undeletion {
  readonly #tables: Tables
  readonly #repository: RepositoryRow
  readonly #settings: UndeleteNeeds['settings']
  readonly #actor: Actor
  readonly result = { manifests: [] as Digest[], tags: [] as Tag[], keptTags: [] as Tag[] }

  constructor(tables: Tables, repository: RepositoryRow, settings: UndeleteNeeds['settings'], actor: Actor) {
    this.#tables = tables
    this.#repository = repository
    this.#settings = settings
    this.#actor = actor
  }

  async bringBack({ id, manifest, entries, tags }: DeletedContent, depth: number): Promise<RowId> {
    const resolved = await this.#resolve(entries, depth)
    const blobIds = resolved.flatMap(({ blobId }) => blobId ?? [])
    await this.#tables.blobs.renewLeases(this.#repository, blobIds)
    const change = { actor: this.#actor, cause: 'undelete' } as const
    const stored = await storeManifest(this.#tables, this.#repository, manifest, resolved, [], change)
    for (const tag of tags.toSorted()) {
      const isNew = await this.#tables.tags.create(this.#repository, tag, stored.id, change)
      this.result[isNew ? 'tags' : 'keptTags'].push(tag)
    }
    await this.#tables.deletedManifests.remove(this.#repository, id)
    this.result.manifests.push(manifest.digest)
    return stored.id
  }

  /** The copy keeps its blobs. Manifests, and content that was missing, are looked up as for a push. */
  async #resolve(entries: DeletedContent['entries'], depth: number): Promise<ManifestEntry[]> {
    const others = entries.filter(({ blobId }) => blobId === undefined).map(({ digest }) => digest)
    const children = new Map(
      others.length === 0 ? [] : await this.#tables.manifests.lockByDigests(this.#repository, others),
    )
    for (const digest of others.toSorted()) {
      if (children.has(digest) || depth === depthMax || this.result.manifests.length >= childrenMax) continue
      const deleted = await this.#tables.deletedManifests.findLocked(this.#repository, digest)
      if (deleted !== undefined) children.set(digest, await this.bringBack(deleted, depth + 1))
    }
    const rest = others.filter((digest) => !children.has(digest))
    const blobs = rest.length === 0 ? new Map() : await this.#tables.blobs.lockByDigests(this.#repository, rest)
    const missing = entries.filter(
      ({ digest, isManifest, isDamaged }) => isDamaged || (isManifest && !children.has(digest)),
    )
    if (missing.length > 0 && this.#settings.missingContent === 'reject') {
      throw new RegistryRefusal('manifest-blob-unknown', ...missing.map(({ digest }) => ({ digest })))
    }
    return entries.map(({ digest, blobId }) => ({
      digest: digest as ManifestEntry['digest'],
      blobId: blobId ?? blobs.get(digest)?.id,
      childId: children.get(digest),
    }))
  }
}

/** How many manifests one request of `undeleteRepository` looks at. */
const undeletedMax = 1_000

/**
 * Brings back what a deletion of the whole repository has deleted, each manifest in a transaction of its own. Other deleted
 * manifests of the repository stay deleted.
 */
export async function undeleteRepository(
  needs: UndeleteAllNeeds,
  repositoryKey: RepositoryKey,
  actor: Actor,
): Promise<RepositoryUndeleted> {
  const result = { manifests: [] as Digest[], tags: [] as Tag[], keptTags: [] as Tag[], refused: [] as Digest[] }
  let before: DeletedPosition | undefined
  for (let seen = 0; seen < undeletedMax; ) {
    const { items, hasMore } = await listDeletedManifests(needs, repositoryKey, { before, limit: 100 })
    for (const { digest, cause } of items) {
      if (cause !== 'repository deleted' || result.manifests.includes(digest)) continue
      const undeleted = await undeleteIfPossible(needs, repositoryKey, digest, actor)
      if (undeleted === undefined) result.refused.push(digest)
      else
        for (const part of ['manifests', 'tags', 'keptTags'] as const)
          (result[part] as string[]).push(...undeleted[part])
    }
    seen += items.length
    before = items.at(-1)
    if (!hasMore) return { ...result, hasMore: false }
  }
  return { ...result, hasMore: true }
}

/** Undefined if it cannot be brought back: content that it names is missing, or its copy has been removed meanwhile. */
async function undeleteIfPossible(
  needs: UndeleteNeeds,
  repositoryKey: RepositoryKey,
  digest: Digest,
  actor: Actor,
): Promise<Undeleted | undefined> {
  try {
    return await undeleteManifest(needs, repositoryKey, digest, actor)
  } catch (error) {
    const isPassed = error instanceof RegistryRefusal && passed.includes(error.refusal)
    if (isPassed) return undefined
    throw error
  }
}

const passed: readonly Refusal[] = ['manifest-blob-unknown', 'manifest-unknown']

/** Ends the time in which the manifest can be undeleted. The collector may remove what only it used. */
export async function purgeDeletedManifest(
  { metadata }: ChangeNeeds,
  repositoryKey: RepositoryKey,
  digest: Digest,
): Promise<void> {
  await metadata.transaction(async (tables) => {
    await checkStillOpen(tables, repositoryKey.accountId)
    const repository = await getRepository(tables, repositoryKey)
    const content = await tables.deletedManifests.findLocked(repository, digest)
    if (content === undefined) throw new RegistryRefusal('manifest-unknown', { digest })
    await tables.deletedManifests.remove(repository, content.id)
  })
}

/** How many copies one transaction removes, and how many transactions one collection has. */
const copiesAtOnce = 200
const batchesMax = 500

/**
 * Removes the copies of manifests that were deleted at least `undeleteMs` ago. A mark records where the next collection
 * continues, on any server.
 */
export async function expireDeletedManifests(
  { metadata }: ChangeNeeds,
  { undeleteMs }: Pick<GarbageAges, 'undeleteMs'>,
  shouldStop: () => boolean,
): Promise<number> {
  let removed = 0
  for (let batches = 0; batches < batchesMax && !shouldStop(); batches += 1) {
    const batch = await metadata.transaction(async (tables) => {
      if (!(await staysWritable(tables))) return undefined
      const position = parsePosition(await tables.marks.find('deleted-manifests'), toDeletedPosition)
      const checked = await tables.deletedManifests.expire(undeleteMs, position, copiesAtOnce)
      if (checked.next !== undefined) {
        await tables.marks.set('deleted-manifests', formatPosition(checked.next.deletedAt, checked.next.id))
      } else if (position !== undefined) await tables.marks.remove('deleted-manifests')
      return checked
    })
    removed += batch?.removed ?? 0
    if (batch?.next === undefined) break
  }
  return removed
}

export function toDeletedPosition(deletedAt: number, id: RowId): DeletedPosition {
  return { deletedAt, id }
}
