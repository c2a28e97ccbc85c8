import { hashHex } from '../lib/hashing.ts'
import { algorithmOf, type Digest, digestFromHex, type WellFormedDigest } from '../oci/digest.ts'
import { RegistryRefusal } from '../oci/errors.ts'
import { type Manifest, type ManifestLimits, parseManifest } from '../oci/manifest.ts'
import { acceptedByDefault } from '../oci/media-types.ts'
import type { Reference, Tag } from '../oci/names.ts'
import type { Actor } from '../ports/actor.ts'
import type { LockedBlob } from '../ports/blobs.ts'
import type { DiskSpace } from '../ports/disk-space.ts'
import type { NewEvent } from '../ports/events.ts'
import type { ManifestEntry, NewManifest } from '../ports/manifests.ts'
import type { MetadataStore, Tables } from '../ports/metadata-store.ts'
import type { OpenRepository, RepositoryKey, RepositoryRow } from '../ports/repositories.ts'
import type { RowId } from '../ports/row-id.ts'
import type { TagChange } from '../ports/tags.ts'
import { checkStillOpen } from './accounts.ts'
import { checkMutable } from './immutable-tags.ts'
import { checkQuota } from './quotas.ts'
import type { RegistrySettings } from './settings.ts'

type Settings = Pick<
  RegistrySettings,
  'missingContent' | 'additionalMediaTypes' | 'tagsPerPushMax' | keyof ManifestLimits
>
type Needs = {
  readonly metadata: Pick<MetadataStore, 'transaction'>
  readonly disk: Pick<DiskSpace, 'isLow' | 'isVeryLow'>
  readonly settings: Settings
}

export interface ManifestPush {
  readonly actor: Actor
  readonly reference: Reference
  /** Additional tags of a push by digest. */
  readonly tags: readonly Tag[]
  readonly mediaType: string
  readonly bytes: Uint8Array
}

export interface PushedManifest {
  readonly digest: Digest
  readonly subject: WellFormedDigest | undefined
  readonly tags: readonly Tag[]
}

/**
 * Stores a manifest and points its tags to it, in one transaction. The content that the manifest names must exist, and
 * is locked until the transaction ends. If the collector has removed a blob before, the push is refused and names it.
 * Otherwise the foreign keys protect the blobs from the collector.
 */
export async function pushManifest(
  { metadata, disk, settings }: Needs,
  repositoryKey: RepositoryKey,
  push: ManifestPush,
): Promise<PushedManifest> {
  const { reference, mediaType, bytes } = push
  const change: TagChange = { actor: push.actor, cause: 'push' }
  if (!acceptedByDefault.includes(mediaType) && !settings.additionalMediaTypes.includes(mediaType)) {
    throw new RegistryRefusal('manifest-type-unsupported', { mediaType })
  }
  if (push.tags.length > settings.tagsPerPushMax) {
    throw new RegistryRefusal('too-many-tags', { max: settings.tagsPerPushMax })
  }
  const digest = requireDigest(reference, bytes)
  const manifest = parseManifest(bytes, mediaType, settings)
  const tags = 'tag' in reference ? [reference.tag] : [...new Set(push.tags)]

  await metadata.transaction(async (tables) => {
    const account = await checkStillOpen(tables, repositoryKey.accountId)
    const repository = await tables.repositories.ensure(repositoryKey)
    if (disk.isLow()) await checkAddsNothing(tables, disk, repositoryKey, repository, digest, tags)
    const entries = await resolveEntries(tables, repository, manifest, settings.missingContent)
    const stored: NewManifest = {
      digest,
      mediaType,
      sizeBytes: bytes.length,
      bytes,
      subject: manifest.subject,
      artifactType: manifest.artifactType,
      annotations: manifest.annotations,
    }
    const { isNew, moved, created } = await storeManifest(tables, repository, stored, entries, tags, change)
    const images = isNew && !repository.isImage ? 1 : 0
    const adds = { bytes: isNew ? bytes.length : 0, repositories: images, tags: created }
    await checkQuota(tables, account, adds)
    if (moved.length > 0) await checkMutable(tables, { account, repositoryKey }, moved)
  })
  return { digest, subject: manifest.subject, tags }
}

interface StoredPush {
  readonly id: RowId
  readonly isNew: boolean
  readonly moved: readonly Tag[]
  readonly created: number
}

/**
 * Inside a transaction that has locked the content of the entries. Stores the manifest, and points the tags to it.
 * `moved`: the tags that had another manifest before. `created`: the number of tags that did not exist.
 */
export async function storeManifest(
  tables: Tables,
  repository: RepositoryRow & Partial<OpenRepository>,
  manifest: NewManifest,
  entries: readonly ManifestEntry[],
  tags: readonly Tag[],
  change: TagChange,
): Promise<StoredPush> {
  const { id, isNew } = await tables.manifests.save(repository, manifest)
  if (isNew) await tables.events.add(repository.accountId, toPushEvent(repository, manifest, change))
  await tables.manifests.saveEntries(repository, id, entries)
  // To prevent deadlocks, tags are locked in a fixed order.
  const moved: Tag[] = []
  let created = 0
  for (const tag of tags.toSorted()) {
    const previous = await tables.tags.point(repository, tag, id, change)
    if (previous === undefined) created += 1
    else if (previous !== id) moved.push(tag)
  }
  if (isNew) {
    await tables.manifests.fillEntries(repository, manifest.digest, id)
    if (tags.length === 0) await tables.untagged.add(repository, id)
    if (repository.isImage !== true) await tables.repositories.markAsImage(repository)
  }
  return { id, isNew, moved, created }
}

function toPushEvent(
  { id: repositoryId }: RepositoryRow,
  manifest: NewManifest,
  { actor, cause }: TagChange,
): NewEvent {
  const { digest, mediaType, sizeBytes } = manifest
  const data = { mediaType, sizeBytes }
  return { type: 'manifest.pushed', repositoryId, digest, actor, cause: cause === 'push' ? undefined : cause, data }
}

/**
 * While the disk is low, a push may only point tags to a manifest that exists. While it is very low, the tags must
 * exist too: each new tag is a row, and a client could fill the reserve of the disk with them.
 */
async function checkAddsNothing(
  tables: Tables,
  disk: Pick<DiskSpace, 'isVeryLow'>,
  repositoryKey: RepositoryKey,
  repository: RepositoryRow,
  digest: Digest,
  tags: readonly Tag[],
): Promise<void> {
  if ((await tables.manifests.findLocked(repository, digest)) === undefined) throw new RegistryRefusal('disk-low')
  if (!disk.isVeryLow()) return
  for (const tag of tags) {
    if ((await tables.manifests.describe(repositoryKey, { tag })) === undefined) throw new RegistryRefusal('disk-low')
  }
}

/** The digest of the bytes: with the algorithm of a push by digest, which must match, or else SHA-256. */
function requireDigest(reference: Reference, bytes: Uint8Array): Digest {
  if ('tag' in reference) return digestFromHex('sha256', hashHex('sha256', bytes))
  const algorithm = algorithmOf(reference.digest)
  const actual = digestFromHex(algorithm, hashHex(algorithm, bytes))
  if (actual !== reference.digest) throw new RegistryRefusal('digest-mismatch', { digest: reference.digest })
  return actual
}

/**
 * Finds the content that the manifest names. An index may list blobs too (build caches do), so its entries are looked
 * up as manifests first, and then as blobs. A damaged blob counts as missing. If missing content is allowed, the entry
 * still points to the damaged blob, so that its link stays.
 */
async function resolveEntries(
  tables: Tables,
  repository: RepositoryRow,
  manifest: Manifest,
  missingContent: RegistrySettings['missingContent'],
): Promise<ManifestEntry[]> {
  const named = [...manifest.blobs, ...manifest.children]
  const digests = [...new Set(named.map((entry) => entry.digest))]
  const childDigests = manifest.children.map((entry) => entry.digest)
  const children =
    childDigests.length === 0 ? new Map() : await tables.manifests.lockByDigests(repository, childDigests)
  const blobDigests = digests.filter((digest) => !children.has(digest))
  const blobs: ReadonlyMap<string, LockedBlob> =
    blobDigests.length === 0 ? new Map() : await tables.blobs.lockByDigests(repository, blobDigests)

  if (missingContent === 'reject') {
    const isOptional = new Set(named.filter((entry) => entry.isForeign).map((entry) => entry.digest))
    const isHere = (digest: string) => children.has(digest) || blobs.get(digest)?.isDamaged === false
    const missing = digests.filter((digest) => !isHere(digest) && !isOptional.has(digest))
    // distribution-spec: "it MUST result in one or more MANIFEST_BLOB_UNKNOWN errors", one for each digest.
    if (missing.length > 0) throw new RegistryRefusal('manifest-blob-unknown', ...missing.map((digest) => ({ digest })))
  }
  return digests.map((digest) => ({ digest, blobId: blobs.get(digest)?.id, childId: children.get(digest) }))
}
