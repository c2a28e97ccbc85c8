import type { Digest } from '../oci/digest.ts'
import type { Tag } from '../oci/names.ts'
import type { DeletionPreviews, ManifestNode } from '../ports/deletion-previews.ts'
import type { RepositoryRow } from '../ports/repositories.ts'
import type { RowId } from '../ports/row-id.ts'

/** What a deletion has to do with a manifest. */
export type DeletionRole = 'image' | 'child' | 'referrer' | 'companion tag'

export interface TagTarget {
  readonly tag: Tag
  readonly digest: Digest
}

export interface GoingManifest extends ManifestNode {
  readonly role: DeletionRole
  /** Its tags, which go with it. */
  readonly tags: readonly Tag[]
}

/** A manifest, and behind it those that it lists and that go with it. They are deleted in one transaction, in this order. */
export type Bundle = readonly GoingManifest[]

export interface RemainingReferrer {
  readonly digest: Digest
  readonly artifactType: string | undefined
  readonly subject: Digest
}

export interface RemainingChild {
  readonly digest: Digest
  readonly parent: Digest
  /** Whether nothing leads to it after the deletion. */
  readonly isUntagged: boolean
}

/** The most that one request deletes, and the most entries of a list in its answer. */
export const manifestsMax = 500
export const tagsMax = 1_000
const relatedMax = 1_000

/** How deep companions of companions are followed. */
const depthMax = 8

interface PlanOptions {
  /** Whether referrers, cosign's tags and children that nothing else leads to go too. */
  readonly withCompanions: boolean
  /** Whether a tag must stay. An image with such a tag stays too. */
  readonly isProtected: ((tag: Tag) => boolean) | undefined
}

/**
 * Collects what a deletion removes and what it leaves behind. It only reads, a bounded number of rows. The deletion itself
 * checks each manifest again.
 */
export class DeletionPlan {
  readonly #previews: DeletionPreviews
  readonly #repository: RepositoryRow
  readonly #options: PlanOptions
  readonly #going = new Map<RowId, GoingManifest>()
  /** In the order of their deletion: companions before the image that they belong to. */
  readonly bundles: GoingManifest[][] = []
  /** Tags that go alone: their manifests stay. */
  readonly tagsAlone: TagTarget[] = []
  /** Other tags of manifests whose tags go. They stay. */
  readonly otherTags: TagTarget[] = []
  /** Manifests that lose their last tag and stay. */
  readonly untagged: ManifestNode[] = []
  /** Manifests that were to go, and stay because an index lists them. */
  readonly listed: ManifestNode[] = []
  /** Immutable tags, which stay with their manifests. */
  readonly immutable: TagTarget[] = []
  readonly referrers: RemainingReferrer[] = []
  readonly children: RemainingChild[] = []
  /** Whether a limit was reached. A repetition continues. */
  isCut = false

  constructor(previews: DeletionPreviews, repository: RepositoryRow, options: PlanOptions) {
    this.#previews = previews
    this.#repository = repository
    this.#options = options
  }

  get manifests(): readonly GoingManifest[] {
    return [...this.#going.values()]
  }

  get isFull(): boolean {
    return this.#going.size >= manifestsMax
  }

  isGoing(id: RowId): boolean {
    return this.#going.has(id)
  }

  /** The image with all its tags. */
  async addImage(node: ManifestNode): Promise<void> {
    if (this.isGoing(node.id) || (await this.#hasProtectedTag(node))) return
    await this.#addBundle(node, 'image', 0)
  }

  async #hasProtectedTag({ id, digest }: ManifestNode): Promise<boolean> {
    const { isProtected } = this.#options
    if (isProtected === undefined) return false
    const tags = (await this.#previews.listTagsOf(this.#repository, id, tagsMax)).filter(isProtected)
    this.immutable.push(...tags.map((tag) => ({ tag, digest })))
    return tags.length > 0
  }

  /** Deepest companions first, so that a repetition after an interruption still finds the image. */
  async #addBundle(node: ManifestNode, role: DeletionRole, depth: number): Promise<void> {
    const bundle: GoingManifest[] = []
    await this.#addTo(bundle, node, role)
    if (this.#options.withCompanions) {
      for (let at = 0; at < bundle.length; at += 1) await this.#addOrphans(bundle, bundle[at] as GoingManifest)
      for (const going of bundle) await this.#addCompanions(going, depth)
    }
    this.bundles.push(bundle)
  }

  async #addTo(bundle: GoingManifest[], node: ManifestNode, role: DeletionRole): Promise<void> {
    const tags = await this.#previews.listTagsOf(this.#repository, node.id, tagsMax)
    const going = { ...node, role, tags }
    this.#going.set(node.id, going)
    bundle.push(going)
  }

  /** The manifests that the index lists, if no tag and no index that stays leads to them. */
  async #addOrphans(bundle: GoingManifest[], index: GoingManifest): Promise<void> {
    for (const child of await this.#previews.listChildren(this.#repository, index.id, relatedMax)) {
      if (this.isGoing(child.id) || !(await this.#isOrphan(child))) continue
      if (this.isFull) this.isCut = true
      else await this.#addTo(bundle, child, 'child')
    }
  }

  /** Whether nothing leads to the child when the going manifests are gone. */
  async #isOrphan(child: ManifestNode): Promise<boolean> {
    const tags = await this.#previews.listTagsOf(this.#repository, child.id, 1)
    return tags.length === 0 && !(await this.#isListed(child.id)) && !(await this.#hasSubject(child))
  }

  /** Whether an index that stays lists the manifest. */
  async #isListed(id: RowId): Promise<boolean> {
    const parents = await this.#previews.listParents(this.#repository, id, this.#going.size + 1)
    return parents.some((parent) => !this.isGoing(parent))
  }

  async #hasSubject({ subject }: ManifestNode): Promise<boolean> {
    if (subject === undefined) return false
    const found = await this.#previews.findByDigest(this.#repository, subject as Digest)
    return found !== undefined && !this.isGoing(found.id)
  }

  async #addCompanions(going: GoingManifest, depth: number): Promise<void> {
    if (depth >= depthMax) {
      this.isCut = true
      return
    }
    for (const [companion, role] of await this.#listCompanions(going)) {
      if (this.isGoing(companion.id) || (await this.#isListed(companion.id))) continue
      if (await this.#hasProtectedTag(companion)) continue
      if (this.isFull) this.isCut = true
      else await this.#addBundle(companion, role, depth + 1)
    }
  }

  async #listCompanions({ digest }: ManifestNode): Promise<(readonly [ManifestNode, DeletionRole])[]> {
    const referrers = await this.#previews.listReferrers(this.#repository, digest, relatedMax)
    const companions: (readonly [ManifestNode, DeletionRole])[] = referrers.map((one) => [one, 'referrer'])
    for (const tag of companionTagsOf(digest)) {
      const found = await this.#previews.findByTag(this.#repository, tag)
      const tags = found && (await this.#previews.listTagsOf(this.#repository, found.id, 2))
      // A manifest with another tag is more than a companion.
      if (found !== undefined && tags?.length === 1) companions.push([found, 'companion tag'])
    }
    return companions
  }

  /**
   * The tags, which all point to this manifest. With `withImages`, the manifest goes too if it has no other tag, and no index
   * lists it.
   */
  async addTags(
    node: ManifestNode,
    tags: readonly Tag[],
    { withImages }: { readonly withImages: boolean },
  ): Promise<void> {
    if (this.isGoing(node.id)) return
    const isProtected = this.#options.isProtected ?? (() => false)
    const targets = tags.map((tag) => ({ tag, digest: node.digest }))
    this.immutable.push(...targets.filter(({ tag }) => isProtected(tag)))
    const all = await this.#previews.listTagsOf(this.#repository, node.id, tags.length + relatedMax)
    const others = all.filter((tag) => !tags.includes(tag) || isProtected(tag))
    this.otherTags.push(...others.map((tag) => ({ tag, digest: node.digest })))
    const isListed = await this.#isListed(node.id)
    if (withImages && others.length === 0 && !isListed) return this.addImage(node)
    this.tagsAlone.push(...targets.filter(({ tag }) => !isProtected(tag)))
    if (others.length > 0) return
    if (withImages) this.listed.push(node)
    else if (!isListed && !(await this.#hasSubject(node))) this.untagged.push(node)
    if (this.#options.withCompanions && !isListed) await this.#addCompanionTags(node.digest)
  }

  /** Without its image, a signature has no use. The tags go; the image and its referrers stay. */
  async #addCompanionTags(digest: Digest): Promise<void> {
    for (const tag of companionTagsOf(digest)) {
      const found = await this.#previews.findByTag(this.#repository, tag)
      if (found === undefined) continue
      const list = this.#options.isProtected?.(tag) ? this.immutable : this.tagsAlone
      list.push({ tag, digest: found.digest })
    }
  }

  /** At the end: what the going images leave behind, their children and referrers. */
  async describeLeft(): Promise<void> {
    for (const going of this.#going.values()) {
      if (this.children.length + this.referrers.length >= relatedMax) break
      for (const child of await this.#previews.listChildren(this.#repository, going.id, relatedMax)) {
        if (this.isGoing(child.id)) continue
        this.children.push({ digest: child.digest, parent: going.digest, isUntagged: await this.#isOrphan(child) })
      }
      for (const referrer of await this.#previews.listReferrers(this.#repository, going.digest, relatedMax)) {
        if (this.isGoing(referrer.id)) continue
        this.referrers.push({
          digest: referrer.digest,
          artifactType: referrer.artifactType,
          subject: going.digest,
        })
      }
    }
  }
}

/** cosign's tags for signatures, attestations and SBOMs of a digest, and the tag that lists referrers for old registries. */
export function companionTagsOf(digest: Digest): Tag[] {
  const name = digest.replace(':', '-')
  // A tag has at most 128 characters, which a digest of SHA-512 exceeds.
  return name.length > 120 ? [] : ['.sig', '.att', '.sbom', ''].map((suffix) => `${name}${suffix}` as Tag)
}
