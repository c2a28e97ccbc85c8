import type { Digest } from '../oci/digest.ts'
import { RegistryRefusal } from '../oci/errors.ts'
import type { Tag } from '../oci/names.ts'
import type { Actor } from '../ports/actor.ts'
import type { DeletionCause } from '../ports/deleted-manifests.ts'
import type { MetadataStore, Tables } from '../ports/metadata-store.ts'
import type { RepositoryKey, RepositoryRow } from '../ports/repositories.ts'
import { checkStillOpen } from './accounts.ts'
import {
  type Bundle,
  DeletionPlan,
  type GoingManifest,
  manifestsMax,
  type TagTarget,
  tagsMax,
} from './deletion-plan.ts'
import { checkMutable, findImmutability } from './immutable-tags.ts'
import { removeManifest } from './manifests.ts'
import { getRepository } from './repositories.ts'
import type { RegistrySettings } from './settings.ts'
import { selectTags, type TagSelection } from './tag-selection.ts'

type Needs = {
  readonly metadata: Pick<MetadataStore, 'transaction' | 'repositories' | 'deletionPreviews' | 'now'>
  readonly settings: Pick<RegistrySettings, 'missingContent' | 'undeleteMs' | 'leaseMs' | 'quarantineMs'>
}

export interface DeletionOptions {
  /** Only tells the consequences. */
  readonly isDryRun: boolean
  /** Deletes the referrers of the images, their cosign tags, and the manifests that only they list, too. */
  readonly withCompanions: boolean
  /** Whether the caller may delete immutable tags. Otherwise they stay, and the images that have one. */
  readonly mayDeleteImmutable: boolean
}

export interface TagDeletionOptions extends DeletionOptions {
  /** Deletes the manifests that have no other tag, too. */
  readonly withImages: boolean
}

/** The consequences of a deletion: of a dry run, those that it would have. */
export interface DeletionReport
  extends Pick<DeletionPlan, 'otherTags' | 'immutable' | 'untagged' | 'listed' | 'referrers' | 'children'> {
  readonly isDryRun: boolean
  /** The tags that go, and where they pointed. */
  readonly tags: readonly TagTarget[]
  readonly manifests: readonly GoingManifest[]
  /** The bytes of blobs that only these manifests use. They are freed at the earliest at `freedAt`. */
  readonly freedBytes: number
  readonly freedAt: number | undefined
  /** Until when the manifests can be undeleted. */
  readonly undeletableUntil: number | undefined
  /** Whether there is more than one request deletes. A repetition continues, and `freedBytes` is a lower bound. */
  readonly hasMore: boolean
  /** For tags: the last tag that was looked at, if there is more. */
  readonly last: Tag | undefined
}

/** An image with all its tags. Refuses if an index lists it, as `deleteManifest` does. */
export async function deleteImage(
  needs: Needs,
  repositoryKey: RepositoryKey,
  digest: Digest,
  options: DeletionOptions,
  actor: Actor,
): Promise<DeletionReport> {
  const { metadata, settings } = needs
  const repository = await getRepository(metadata, repositoryKey)
  const node = await metadata.deletionPreviews.findByDigest(repository, digest)
  if (node === undefined) throw new RegistryRefusal('manifest-unknown', { digest })
  const isListed = (await metadata.deletionPreviews.listParents(repository, node.id, 1)).length > 0
  if (isListed && settings.missingContent === 'reject') throw new RegistryRefusal('manifest-in-use', { digest })
  const plan = await openPlan(needs, repositoryKey, repository, options)
  await plan.addImage(node)
  const [immutable] = plan.immutable
  if (immutable !== undefined && !plan.isGoing(node.id))
    throw new RegistryRefusal('tag-immutable', { tag: immutable.tag })
  return carryOut(needs, repositoryKey, repository, plan, options, {
    actor,
    cause: 'manifest deleted',
    detaches: isListed,
  })
}

export async function deleteTags(
  needs: Needs,
  repositoryKey: RepositoryKey,
  selection: TagSelection,
  options: TagDeletionOptions,
  actor: Actor,
): Promise<DeletionReport> {
  const { metadata } = needs
  const repository = await getRepository(metadata, repositoryKey)
  const selected = await selectTags(needs, repository, selection)
  const plan = await openPlan(needs, repositoryKey, repository, options)
  let last: Tag | undefined = selected.last
  for (const same of Map.groupBy(selected.tagged, ({ node }) => node.id).values()) {
    const node = same[0]?.node
    if (node === undefined) continue
    if (plan.isFull) {
      plan.isCut = true
      // The first tag that was not looked at can come before others that were. So a repetition begins where this one began.
      last = undefined
      break
    }
    await plan.addTags(
      node,
      same.map(({ tag }) => tag),
      options,
    )
  }
  const deletion = { actor, cause: 'tags deleted', detaches: false } as const
  const report = await carryOut(needs, repositoryKey, repository, plan, options, deletion)
  return { ...report, hasMore: report.hasMore || selected.last !== undefined, last }
}

/** All manifests and tags of the repository. It disappears when its history and its deleted manifests do. */
export async function deleteRepository(
  needs: Needs,
  repositoryKey: RepositoryKey,
  options: Omit<DeletionOptions, 'withCompanions'>,
  actor: Actor,
): Promise<DeletionReport> {
  const { metadata } = needs
  const repository = await getRepository(metadata, repositoryKey)
  const plan = await openPlan(needs, repositoryKey, repository, { ...options, withCompanions: false })
  const nodes = await metadata.deletionPreviews.list(repository, '', manifestsMax + 1)
  for (const node of nodes.slice(0, manifestsMax)) await plan.addImage(node)
  plan.isCut = nodes.length > manifestsMax
  return carryOut(needs, repositoryKey, repository, plan, options, {
    actor,
    cause: 'repository deleted',
    detaches: true,
  })
}

async function openPlan(
  { metadata }: Needs,
  repositoryKey: RepositoryKey,
  repository: RepositoryRow,
  { withCompanions, mayDeleteImmutable }: Omit<DeletionOptions, 'isDryRun'>,
): Promise<DeletionPlan> {
  const isImmutable = await metadata.transaction(async (tables) => {
    const account = await checkStillOpen(tables, repositoryKey.accountId)
    return mayDeleteImmutable ? undefined : findImmutability(tables, account)
  })
  const isProtected = isImmutable && ((tag: Tag) => isImmutable(repositoryKey.repository, tag))
  return new DeletionPlan(metadata.deletionPreviews, repository, { withCompanions, isProtected })
}

interface PlannedDeletion {
  readonly actor: Actor
  readonly cause: DeletionCause
  /** Whether manifests go although an index lists them. */
  readonly detaches: boolean
}

/** Deletes what the plan contains, unless it is a dry run. */
async function carryOut(
  needs: Needs,
  repositoryKey: RepositoryKey,
  repository: RepositoryRow,
  plan: DeletionPlan,
  options: Omit<DeletionOptions, 'withCompanions'>,
  deletion: PlannedDeletion,
): Promise<DeletionReport> {
  const { metadata, settings } = needs
  const { isDryRun, mayDeleteImmutable } = options
  if (deletion.cause !== 'repository deleted') await plan.describeLeft()
  const ids = plan.manifests.map(({ id }) => id)
  const exclusive = await metadata.deletionPreviews.measureExclusive(repository, ids)
  const now = await metadata.now()
  const done = isDryRun
    ? { tags: plan.tagsAlone, manifests: plan.bundles.flat() }
    : await execute(needs, repositoryKey, repository, plan, { ...deletion, mayDeleteImmutable })
  const tagsOfImages = done.manifests.flatMap(({ tags, digest }) => tags.map((tag) => ({ tag, digest })))
  const { otherTags, immutable, untagged, listed, referrers, children } = plan
  const isKept = done.manifests.length > 0
  return {
    isDryRun,
    tags: [...done.tags, ...tagsOfImages].toSorted((one, other) => (one.tag < other.tag ? -1 : 1)),
    manifests: done.manifests,
    otherTags,
    immutable,
    untagged,
    listed,
    referrers,
    children,
    freedBytes: exclusive.bytes,
    freedAt: isKept ? now + Math.max(settings.undeleteMs, settings.leaseMs) + settings.quarantineMs : undefined,
    undeletableUntil: isKept && settings.undeleteMs > 0 ? now + settings.undeleteMs : undefined,
    hasMore: plan.isCut,
    last: undefined,
  }
}

interface Done {
  readonly tags: TagTarget[]
  readonly manifests: GoingManifest[]
}

/** About how many manifests, and how many tags, one transaction removes. */
const manifestsAtOnce = 25
const tagsAtOnce = 100

async function execute(
  needs: Needs,
  repositoryKey: RepositoryKey,
  repository: RepositoryRow,
  plan: DeletionPlan,
  deletion: PlannedDeletion & Pick<DeletionOptions, 'mayDeleteImmutable'>,
): Promise<Done> {
  const done: Done = { tags: [], manifests: [] }
  const tags = plan.tagsAlone.toSorted((one, other) => (one.tag < other.tag ? -1 : 1))
  for (let at = 0; at < tags.length; at += tagsAtOnce) {
    const some = tags.slice(at, at + tagsAtOnce)
    const removed = await needs.metadata.transaction(async (tables) => {
      const account = await checkStillOpen(tables, repositoryKey.accountId)
      const gone = await removeTags(tables, repositoryKey, some, deletion.actor)
      const names = gone.map(({ tag }) => tag)
      if (!deletion.mayDeleteImmutable) await checkMutable(tables, { account, repositoryKey }, names)
      return gone
    })
    done.tags.push(...removed)
  }
  for (const portion of toPortions(plan.bundles)) {
    const removed = await needs.metadata.transaction(async (tables) => {
      const account = await checkStillOpen(tables, repositoryKey.accountId)
      await tables.repositories.lockForRemoval(repository, portion.length)
      const gone: GoingManifest[] = []
      for (const going of portion) {
        const one = await removeGoing(tables, repository, going, deletion, needs.settings)
        if (one !== undefined) gone.push(one)
      }
      const names = gone.flatMap(({ tags: its }) => its)
      if (!deletion.mayDeleteImmutable) await checkMutable(tables, { account, repositoryKey }, names)
      return gone
    })
    done.manifests.push(...removed)
  }
  return done
}

/** Joins small bundles. A bundle is never divided. */
function toPortions(bundles: readonly Bundle[]): GoingManifest[][] {
  const portions: GoingManifest[][] = []
  for (const bundle of bundles) {
    const last = portions.at(-1)
    if (last !== undefined && last.length + bundle.length <= manifestsAtOnce) last.push(...bundle)
    else portions.push([...bundle])
  }
  return portions
}

/** A tag that points elsewhere by now stays. */
async function removeTags(
  { tags, manifests }: Tables,
  repositoryKey: RepositoryKey,
  targets: readonly TagTarget[],
  actor: Actor,
): Promise<TagTarget[]> {
  const removed: TagTarget[] = []
  for (const target of targets) {
    const found = await manifests.describe(repositoryKey, { tag: target.tag })
    if (found?.digest !== target.digest) continue
    if (await tags.remove(repositoryKey, target.tag, { actor, cause: 'tag deleted' })) removed.push(target)
  }
  return removed
}

/**
 * Removes the manifest with its tags. Undefined, without a change, if it is gone already, or if it must stay: an index lists it
 * by now, or it got another tag since the plan was made.
 */
async function removeGoing(
  tables: Tables,
  repository: RepositoryRow,
  going: GoingManifest,
  { actor, cause, detaches }: PlannedDeletion,
  settings: Needs['settings'],
): Promise<GoingManifest | undefined> {
  const { digest, role } = going
  const id = await tables.manifests.findLocked(repository, digest)
  if (id === undefined) return undefined
  if (await tables.manifests.isListed(repository, id)) {
    if (!detaches) return undefined
    await tables.manifests.detachFromIndexes(repository, id)
  }
  const tags = await tables.deletionPreviews.listTagsOf(repository, id, tagsMax)
  const hasNewTag = tags.some((tag) => !going.tags.includes(tag))
  if (hasNewTag && (role !== 'image' || cause === 'tags deleted')) return undefined
  const removed = await tables.tags.removeAllOf(repository, id, { actor, cause: 'manifest deleted' })
  await removeManifest(tables, repository, { id, digest }, { actor, cause, tags: removed }, settings)
  return { ...going, id, tags: removed }
}
