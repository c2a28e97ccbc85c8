import { parseWellFormedDigest } from '../../oci/digest.ts'
import { ociIndex } from '../../oci/media-types.ts'
import type { Referrer } from '../../ports/manifests.ts'
import { listReferrers } from '../../registry/referrers.ts'
import type { Answer, RepositoryExchange } from '../exchange.ts'
import { nextPage } from '../links.ts'

// Clients read at most 4 MiB of an index, and two of the large ones do not follow links: a page is as long as it may be.
const pageBytesMax = 4 * 1024 * 1024 - 1024

/** GET /v2/{name}/referrers/{digest} - what names this subject, as an image index. */
export async function getReferrers({ app, scope, mount, path, target }: RepositoryExchange): Promise<Answer> {
  const subject = parseWellFormedDigest(path['digest'] ?? '')
  const artifactTypes = wantedTypes(target.query)
  const after = target.query.get('last') ?? undefined
  const entries: string[] = []
  let bytes = 0
  let last: string | undefined
  let hasMore = false
  for await (const referrer of listReferrers(app, scope, { subject, artifactTypes, after })) {
    const entry = JSON.stringify(toDescriptor(referrer))
    bytes += Buffer.byteLength(entry) + 1
    hasMore = bytes > pageBytesMax && last !== undefined
    if (hasMore) break
    entries.push(entry)
    last = referrer.digest
  }
  const headers: Record<string, string> = { 'content-type': ociIndex }
  // distribution-spec: "If filtering is requested and applied, the response MUST include a header".
  if (artifactTypes.length > 0) headers['oci-filters-applied'] = 'artifactType'
  if (hasMore && last !== undefined) {
    const parameters = { ...(artifactTypes.length > 0 ? { artifactType: artifactTypes } : {}), last }
    headers['link'] = nextPage(`${mount}/${scope.repository}/referrers/${subject}`, parameters)
  }
  const body = `{"schemaVersion":2,"mediaType":"${ociIndex}","manifests":[${entries.join(',')}]}`
  return { status: 200, headers, body }
}

/**
 * Repeated, any of them (containerd). A raw `+` in a query means a space, which no media type holds. Nothing is of a type
 * with a NUL in it, and some databases take none: it becomes the type that nothing has.
 */
function wantedTypes(query: URLSearchParams): string[] {
  return query
    .getAll('artifactType')
    .filter((type) => type !== '')
    .map((type) => (type.includes('\0') ? '' : type.replaceAll(' ', '+')))
}

function toDescriptor({ mediaType, digest, sizeBytes, artifactType, annotations }: Referrer): unknown {
  return { mediaType, digest, size: sizeBytes, artifactType, annotations }
}
