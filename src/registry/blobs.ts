import { andThen } from '../lib/and-then.ts'
import type { Digest } from '../oci/digest.ts'
import { BytesLost, RegistryRefusal } from '../oci/errors.ts'
import type { RepositoryName } from '../oci/names.ts'
import type { Awaitable } from '../ports/awaitable.ts'
import type { BlobStore, ByteRange, OutgoingBytes } from '../ports/blob-store.ts'
import type { LinkedBlob } from '../ports/blobs.ts'
import type { Clock } from '../ports/clock.ts'
import type { DiskSpace } from '../ports/disk-space.ts'
import type { Principal } from '../ports/identity.ts'
import type { MetadataStore } from '../ports/metadata-store.ts'
import type { RepositoryKey } from '../ports/repositories.ts'
import { isAllowed, lacksScopeFor } from './access.ts'
import { checkStillOpen } from './accounts.ts'
import { openContent } from './blob-content.ts'
import { getRepository } from './repositories.ts'
import type { RegistrySettings } from './settings.ts'

type FindNeeds = { readonly metadata: Pick<MetadataStore, 'blobs' | 'repositories'> }
type DescribeNeeds = FindNeeds & {
  readonly metadata: Pick<MetadataStore, 'blobs' | 'repositories' | 'transaction'>
  readonly settings: Pick<RegistrySettings, 'leaseMs'>
  readonly clock: Pick<Clock, 'now'>
}
type OpenNeeds = FindNeeds & { readonly blobs: Pick<BlobStore, 'open' | 'presignDownload'> }
type MountNeeds = {
  readonly metadata: Pick<MetadataStore, 'blobs' | 'transaction'>
  readonly disk: Pick<DiskSpace, 'isLow'>
}
type ChangeNeeds = { readonly metadata: Pick<MetadataStore, 'blobs' | 'transaction'> }

/** How many repositories that link the blob a mount without `from` tries. */
const holdersMax = 100

/**
 * The blob's size. The client will not upload a blob that exists, so the blob must not be collected soon: a lease that
 * is half over is renewed before the answer.
 */
export function describeBlob(needs: DescribeNeeds, repositoryKey: RepositoryKey, digest: Digest): Awaitable<number> {
  return andThen(getBlob(needs, repositoryKey, digest), ({ isDamaged, leasedAt, sizeBytes }) => {
    if (isDamaged) throw new RegistryRefusal('blob-unknown', { digest })
    if (needs.clock.now() - leasedAt <= needs.settings.leaseMs / 2) return sizeBytes
    return renewLease(needs, repositoryKey, digest).then(() => sizeBytes)
  })
}

async function renewLease({ metadata }: DescribeNeeds, repositoryKey: RepositoryKey, digest: Digest): Promise<void> {
  await metadata.transaction(async (tables) => {
    const repository = await tables.repositories.find(repositoryKey)
    const blob = repository && (await tables.blobs.lockByDigests(repository, [digest])).get(digest)
    // Since the first read, the collector may have removed the blob, or a read may have found its bytes lost.
    if (repository === undefined || blob?.isDamaged !== false) throw new RegistryRefusal('blob-unknown', { digest })
    await tables.blobs.renewLeases(repository, [blob.id])
  })
}

export interface FoundBlob {
  readonly sizeBytes: number
  /** All bytes or a part. A method of its own, because a range can be checked only against the size. */
  open(range?: ByteRange): Awaitable<OutgoingBytes | Uint8Array>
  /** A URL of the blob store itself, if it has one and has the bytes. */
  linkFor(lifetimeSeconds: number): string | undefined
}

/** The blob, if this repository links it. That the account has the bytes is not enough. */
export function openBlob(needs: OpenNeeds, repositoryKey: RepositoryKey, digest: Digest): Awaitable<FoundBlob> {
  return andThen(getBlob(needs, repositoryKey, digest), (blob) => ({
    sizeBytes: blob.sizeBytes,
    open: (range) => openBytes(needs, repositoryKey, digest, blob, range),
    // No client is redirected to bytes that are known to be lost.
    linkFor: (lifetimeSeconds) =>
      blob.isDamaged || blob.isInline ? undefined : needs.blobs.presignDownload(blob.storageKey, lifetimeSeconds),
  }))
}

function openBytes(
  needs: OpenNeeds,
  repositoryKey: RepositoryKey,
  digest: Digest,
  blob: LinkedBlob,
  range: ByteRange | undefined,
): Awaitable<OutgoingBytes | Uint8Array> {
  const found = blob.isDamaged ? undefined : openContent(needs, blob, range)
  return andThen(found, (bytes) => bytes ?? openDoubtful(needs, repositoryKey, digest, range))
}

/**
 * Opens bytes that were not found now, or not at an earlier read. The row may name another object by now, so it is read
 * again. Lost bytes are marked in the row, for all servers. If marked bytes are found again, the mark is removed.
 */
async function openDoubtful(
  needs: OpenNeeds,
  repositoryKey: RepositoryKey,
  digest: Digest,
  range: ByteRange | undefined,
): Promise<OutgoingBytes | Uint8Array> {
  const blob = await getBlob(needs, repositoryKey, digest)
  const bytes = await openContent(needs, blob, range)
  if (bytes !== undefined) {
    // If the row cannot be written now, the next read removes the mark.
    if (blob.isDamaged) await needs.metadata.blobs.unmarkDamaged(blob).catch(() => false)
    return bytes
  }
  if (!blob.isDamaged && (await needs.metadata.blobs.markDamaged(blob))) {
    throw new BytesLost({ repository: repositoryKey.repository, digest, storageKey: blob.storageKey })
  }
  throw new RegistryRefusal('blob-unknown', { digest })
}

function getBlob({ metadata }: FindNeeds, repositoryKey: RepositoryKey, digest: Digest): Awaitable<LinkedBlob> {
  const found = metadata.blobs.find(repositoryKey, digest)
  return andThen(found, (blob) => blob ?? refuseUnknown({ metadata }, repositoryKey, digest))
}

async function refuseUnknown({ metadata }: FindNeeds, repositoryKey: RepositoryKey, digest: Digest): Promise<never> {
  await getRepository(metadata, repositoryKey)
  throw new RegistryRefusal('blob-unknown', { digest })
}

/**
 * Links the blob from a repository that the caller may pull: `from`, or any. False if there is no such repository. The
 * result does not tell whether the blob exists where the caller may not pull.
 */
export async function mountBlob(
  { metadata, disk }: MountNeeds,
  principal: Principal,
  target: RepositoryKey,
  digest: Digest,
  from: RepositoryName | undefined,
): Promise<boolean> {
  // The client can get a token for this repository too, and need not upload the blob.
  if (from !== undefined && lacksScopeFor(principal, from))
    throw new RegistryRefusal('scope-insufficient', { right: 'pull' })
  if (disk.isLow()) throw new RegistryRefusal('disk-low')
  const candidates =
    from === undefined ? await metadata.blobs.listHolders(target.accountId, digest, holdersMax) : [from]
  const source = candidates.find((name) => isAllowed(principal, 'pull', name))
  if (source === undefined) return false
  return metadata.transaction(async (tables) => {
    await checkStillOpen(tables, target.accountId)
    const holder = await tables.repositories.find({ accountId: target.accountId, repository: source })
    const blob = holder && (await tables.blobs.lockByDigests(holder, [digest])).get(digest)
    if (blob?.isDamaged !== false) return false
    await tables.blobs.link(await tables.repositories.ensure(target), blob.id, digest)
    return true
  })
}

/** Removes the repository's link. Refuses if a manifest of the repository names the blob. */
export async function deleteBlob(
  { metadata }: ChangeNeeds,
  repositoryKey: RepositoryKey,
  digest: Digest,
): Promise<void> {
  await metadata.transaction(async (tables) => {
    await checkStillOpen(tables, repositoryKey.accountId)
    const repository = await getRepository(tables, repositoryKey)
    const id = (await tables.blobs.lockByDigests(repository, [digest])).get(digest)?.id
    if (id === undefined) throw new RegistryRefusal('blob-unknown', { digest })
    if (await tables.blobs.isUsed(repository, id)) throw new RegistryRefusal('blob-in-use', { digest })
    await tables.blobs.unlink(repository, id)
  })
}
