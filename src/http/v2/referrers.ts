import { parseWellFormedDigest } from '../../oci/digest.ts'
import { ociIndex } from '../../oci/media-types.ts'
import type { Referrer } from '../../ports/manifests.ts'
import { listReferrers } from '../../registry/referrers.ts'
import type { Answer } from '../answer.ts'
import type { RepositoryExchange } from '../exchange.ts'
import { nextPageLink, parseAfter } from '../paging.ts'
import { smallAnswerBytes } from '../request-memory.ts'
import type { Route } from '../route.ts'

export const referrerRoutes: readonly Route[] = [
  {
    operationId: 'getImageDigestReferrers',
    method: 'GET',
    pattern: '/{name}/referrers/{digest}',
    access: 'repository',
    right: 'pull',
    handle: getReferrers,
    summary: 'List the manifests that name a digest as their subject',
    description:
      'The list of an unknown digest is empty. A page has at most `limits.referrers_bytes`, or one referrer if that is larger. `Link` leads to the next page.',
    parameters: ['subject', 'artifactType', 'last'],
    answers: {
      200: {
        description: 'An image index with one entry for each manifest.',
        headers: { 'OCI-Filters-Applied': 'sometimes', Link: 'sometimes' },
        content: { [ociIndex]: 'ReferrerResponse' },
      },
    },
    refusals: ['digest-invalid'],
  },
]

const start = `{"schemaVersion":2,"mediaType":"${ociIndex}","manifests":[`
const end = ']}'
const frameBytes = start.length + end.length

/** Two widely used clients do not follow the `Link` to the next page, so a page is as long as the limit allows. */
async function getReferrers(exchange: RepositoryExchange): Promise<Answer> {
  const { app, repositoryKey, mount, path, target } = exchange
  const subject = parseWellFormedDigest(path['digest'] ?? '')
  const artifactTypes = wantedTypes(target.query)
  const after = parseAfter(target.query)
  const entries: string[] = []
  let bytes = frameBytes
  let last: string | undefined
  let hasMore = false
  let isReserved = false
  for await (const referrer of listReferrers(app, repositoryKey, { subject, artifactTypes, after })) {
    const entry = toDescriptorJson(referrer)
    bytes += Buffer.byteLength(entry) + 1
    hasMore = bytes > app.settings.referrersBytesMax && last !== undefined
    // Most pages are small. A large page reserves its largest possible size before it grows.
    if (bytes > smallAnswerBytes && !isReserved) await exchange.reserve(app.settings.referrersBytesMax)
    isReserved = bytes > smallAnswerBytes
    if (hasMore) break
    entries.push(entry)
    last = referrer.digest
  }
  const headers: Record<string, string> = { 'content-type': ociIndex }
  // distribution-spec: "If filtering is requested and applied, the response MUST include a header".
  if (artifactTypes.length > 0) headers['oci-filters-applied'] = 'artifactType'
  if (hasMore && last !== undefined) {
    const parameters = { ...(artifactTypes.length > 0 ? { artifactType: artifactTypes } : {}), last }
    headers['link'] = nextPageLink(`${mount}/${repositoryKey.repository}/referrers/${subject}`, parameters)
  }
  const body = `${start}${entries.join(',')}${end}`
  return { status: 200, headers, body }
}

/**
 * If the parameter is repeated, any of the types matches (containerd). A raw `+` in a query means a space, which no
 * media type contains. No artifact has a type with a NUL, and PostgreSQL accepts none: it becomes the empty type, which
 * matches nothing.
 */
function wantedTypes(query: URLSearchParams): string[] {
  return query
    .getAll('artifactType')
    .filter((type) => type !== '')
    .map((type) => (type.includes('\0') ? '' : type.replaceAll(' ', '+')))
}

/** The annotations are stored as JSON. They can be large, so they are not parsed and serialised again. */
function toDescriptorJson({ mediaType, digest, sizeBytes, artifactType, annotationsJson }: Referrer): string {
  const json = JSON.stringify({ mediaType, digest, size: sizeBytes, artifactType })
  return annotationsJson === undefined ? json : `${json.slice(0, -1)},"annotations":${annotationsJson}}`
}
