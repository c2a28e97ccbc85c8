import type { WellFormedDigest } from '../oci/digest.ts'
import type { Referrer } from '../ports/manifests.ts'
import type { MetadataStore } from '../ports/metadata-store.ts'
import type { Scope } from '../ports/repositories.ts'

type Needs = { readonly metadata: Pick<MetadataStore, 'manifests'> }

export interface ReferrersRequest {
  readonly subject: WellFormedDigest
  readonly artifactTypes: readonly string[]
  readonly after: string | undefined
}

/** How many rows are asked for at once; the reader decides where to stop. */
const batchSize = 500

/**
 * The manifests of the repository that name the subject, in digest order. An unknown subject or repository has none: a
 * subject may be pushed after its referrers.
 */
export async function* listReferrers(
  { metadata }: Needs,
  scope: Scope,
  { subject, artifactTypes, after }: ReferrersRequest,
): AsyncGenerator<Referrer> {
  let last = after
  for (;;) {
    const rows = await metadata.manifests.listReferrers(scope, {
      subject,
      artifactTypes,
      after: last,
      limit: batchSize,
    })
    yield* rows
    if (rows.length < batchSize) return
    last = rows.at(-1)?.digest
  }
}
