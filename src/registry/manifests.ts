import { andThen } from '../lib/and-then.ts'
import type { Digest } from '../oci/digest.ts'
import { RegistryRefusal } from '../oci/errors.ts'
import type { Reference, Tag } from '../oci/names.ts'
import type { Actor } from '../ports/actor.ts'
import type { Awaitable } from '../ports/awaitable.ts'
import type { DeletionCause } from '../ports/deleted-manifests.ts'
import type { ManifestSummary, StoredManifest } from '../ports/manifests.ts'
import type { MetadataStore, Tables } from '../ports/metadata-store.ts'
import type { RepositoryKey, RepositoryRow } from '../ports/repositories.ts'
import type { RowId } from '../ports/row-id.ts'
import { checkStillOpen } from './accounts.ts'
import { checkMutable } from './immutable-tags.ts'
import type { PullRecorder } from './pulls.ts'
import { getRepository } from './repositories.ts'
import type { RegistrySettings } from './settings.ts'

type ReadNeeds = {
  readonly metadata: Pick<MetadataStore, 'manifests' | 'repositories'>
  readonly pulls: Pick<PullRecorder, 'note' | 'noteHead'>
}
type DeleteNeeds = {
  readonly metadata: Pick<MetadataStore, 'transaction'>
  readonly settings: Pick<RegistrySettings, 'missingContent' | 'undeleteMs'>
}

/** The manifest, for a client that pulls it. The pull is noted. */
export function getManifest(
  needs: ReadNeeds,
  repositoryKey: RepositoryKey,
  reference: Reference,
): Awaitable<StoredManifest> {
  const found = needs.metadata.manifests.find(repositoryKey, reference)
  return andThen(found, (manifest) => {
    if (manifest === undefined) return refuseUnknown(needs, repositoryKey, reference)
    needs.pulls.note(manifest.mark, repositoryKey.accountId, reference)
    return manifest
  })
}

/** As `getManifest`, without the bytes. It counts as a pull only if the reference is a tag. */
export function describeManifest(
  needs: ReadNeeds,
  repositoryKey: RepositoryKey,
  reference: Reference,
): Awaitable<ManifestSummary> {
  const found = needs.metadata.manifests.describe(repositoryKey, reference)
  return andThen(found, (summary) => {
    if (summary === undefined) return refuseUnknown(needs, repositoryKey, reference)
    needs.pulls.noteHead(summary.mark, repositoryKey.accountId, reference)
    return summary
  })
}

async function refuseUnknown(
  { metadata }: Pick<ReadNeeds, 'metadata'>,
  repositoryKey: RepositoryKey,
  reference: Reference,
): Promise<never> {
  await getRepository(metadata, repositoryKey)
  throw new RegistryRefusal('manifest-unknown', { ...reference })
}

/**
 * Removes the manifest with all its tags. Refuses if an index lists the manifest, because the index would lose one of its
 * platforms. Also refuses if one of the tags is immutable, unless the caller may delete such tags.
 */
export async function deleteManifest(
  { metadata, settings }: DeleteNeeds,
  repositoryKey: RepositoryKey,
  digest: Digest,
  actor: Actor,
  mayDeleteImmutable = false,
): Promise<void> {
  await metadata.transaction(async (tables) => {
    const account = await checkStillOpen(tables, repositoryKey.accountId)
    const repository = await getRepository(tables, repositoryKey)
    await tables.repositories.lockForRemoval(repository, 1)
    const id = await tables.manifests.findLocked(repository, digest)
    if (id === undefined) throw new RegistryRefusal('manifest-unknown', { digest })
    if (await tables.manifests.isListed(repository, id)) {
      if (settings.missingContent === 'reject') throw new RegistryRefusal('manifest-in-use', { digest })
      await tables.manifests.detachFromIndexes(repository, id)
    }

    const tags = await tables.tags.removeAllOf(repository, id, { actor, cause: 'manifest deleted' })
    if (!mayDeleteImmutable) await checkMutable(tables, { account, repositoryKey }, tags)
    await removeManifest(tables, repository, { id, digest }, { actor, cause: 'manifest deleted', tags }, settings)
  })
}

/** Who deletes a manifest, why, and the tags that went with it. */
export interface Deletion {
  readonly actor: Actor
  readonly cause: DeletionCause
  readonly tags: readonly Tag[]
}

/**
 * Inside a transaction that has locked the manifest. No tag may point to it, and no index may list it. Its blobs get a new
 * lease, and what it led to may be untagged afterwards. A copy is kept, so that it can be undeleted.
 */
export async function removeManifest(
  tables: Tables,
  repository: RepositoryRow,
  { id, digest }: { readonly id: RowId; readonly digest: Digest },
  deletion: Deletion,
  { undeleteMs }: Pick<RegistrySettings, 'undeleteMs'>,
): Promise<void> {
  if (undeleteMs > 0) await tables.deletedManifests.keep(repository, id, deletion)
  await tables.blobs.renewLeases(repository, await tables.manifests.listBlobs(repository, id))
  await tables.untagged.addRelated(repository, { id, digest })
  await tables.manifests.remove(repository, id)
  const { actor, cause } = deletion
  const event = { type: 'manifest.deleted', repositoryId: repository.id, digest, actor, cause } as const
  await tables.events.add(repository.accountId, event)
  await tables.repositories.unmarkIfEmpty(repository)
}
