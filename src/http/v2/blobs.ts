import { type Digest, isDigest, parseDigest } from '../../oci/digest.ts'
import { RegistryRefusal } from '../../oci/errors.ts'
import { deleteBlob, describeBlob, openBlob } from '../../registry/blobs.ts'
import { contentHeaders, isUnchanged, notModified } from '../content-headers.ts'
import type { Answer, RepositoryExchange } from '../exchange.ts'
import { parseRange } from '../ranges.ts'

/** GET, HEAD /v2/{name}/blobs/{digest}, all of it or the part that `Range` names; or the address of the store's own copy. */
export async function getBlob(exchange: RepositoryExchange): Promise<Answer> {
  const { app, scope, path, method, request } = exchange
  const digest = path['digest'] ?? ''
  if (!isDigest(digest)) throw new RegistryRefusal('blob-unknown', { digest: digest.slice(0, 255) })
  const headers = {
    ...contentHeaders(digest, 'application/octet-stream'),
    'accept-ranges': 'bytes',
    'content-disposition': 'attachment',
  }
  if (method === 'HEAD') {
    const sizeBytes = await describeBlob(app, scope, digest)
    if (isUnchanged(request.headers, digest)) return notModified(digest)
    return { status: 200, headers, lengthBytes: sizeBytes }
  }
  const { sizeBytes, open, linkFor } = await openBlob(app, scope, digest)
  if (isUnchanged(request.headers, digest)) return notModified(digest)
  const link = app.redirects?.isFor(request, exchange.peers) ? linkFor(app.redirects.lifetimeSeconds) : undefined
  if (link !== undefined) return sentTo(link, digest)

  const range = parseRange(rangeHeader(request.headers, digest), sizeBytes)
  if (range === undefined) return { status: 200, headers, body: await open(), lengthBytes: sizeBytes }
  return {
    status: 206,
    headers: { ...headers, 'content-range': `bytes ${range.first}-${range.last}/${sizeBytes}` },
    body: await open(range),
    lengthBytes: range.last - range.first + 1,
  }
}

/** A range is the store's to give: clients ask again for the same. The address lets anybody in, so nobody may keep it. */
function sentTo(link: string, digest: Digest): Answer {
  const headers = { location: link, 'docker-content-digest': digest, 'cache-control': 'no-store' }
  return { status: 307, headers, lengthBytes: 0 }
}

/** RFC 9110, 13.1.5: a range that goes with another version of the content is ignored. */
function rangeHeader(headers: Headers, digest: string): string | null {
  const condition = headers.get('if-range')
  return condition !== null && condition !== `"${digest}"` ? null : headers.get('range')
}

/** DELETE /v2/{name}/blobs/{digest} */
export async function deleteBlobByDigest({ app, scope, path }: RepositoryExchange): Promise<Answer> {
  await deleteBlob(app, scope, parseDigest(path['digest'] ?? ''))
  return { status: 202, headers: {} }
}
