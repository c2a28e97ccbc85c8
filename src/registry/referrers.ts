import type { WellFormedDigest } from '../oci/digest.ts'
import type { Referrer, ReferrerBatch } from '../ports/manifests.ts'
import type { MetadataStore } from '../ports/metadata-store.ts'
import type { RepositoryKey } from '../ports/repositories.ts'

type Needs = { readonly metadata: Pick<MetadataStore, 'manifests'> }

export interface ReferrersRequest {
  readonly subject: WellFormedDigest
  readonly artifactTypes: readonly string[]
  readonly after: string | undefined
}

/** The most that is in memory at once, besides what the caller keeps. */
const batchRowsMax = 500
const batchBytesMax = 1024 * 1024

/**
 * The manifests of the repository that have this subject, in the order of their digests. Empty for an unknown subject
 * or repository, because a subject may be pushed after its referrers.
 */
export async function* listReferrers(
  { metadata }: Needs,
  repositoryKey: RepositoryKey,
  { subject, artifactTypes, after }: ReferrersRequest,
): AsyncGenerator<Referrer> {
  let last = after
  let batch: ReferrerBatch
  do {
    const query = { subject, artifactTypes, after: last, limit: batchRowsMax, bytesMax: batchBytesMax }
    batch = await metadata.manifests.listReferrers(repositoryKey, query)
    yield* batch.referrers
    last = batch.referrers.at(-1)?.digest
  } while (batch.hasMore)
}
