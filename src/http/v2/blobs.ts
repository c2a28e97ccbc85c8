import { andThen } from '../../lib/and-then.ts'
import { type Digest, isDigest, parseDigest } from '../../oci/digest.ts'
import { RegistryRefusal } from '../../oci/errors.ts'
import type { Awaitable } from '../../ports/awaitable.ts'
import { deleteBlob, describeBlob, type FoundBlob, openBlob } from '../../registry/blobs.ts'
import type { Answer } from '../answer.ts'
import { ContentHeaders, isUnchanged, notModified } from '../content-headers.ts'
import type { RepositoryExchange } from '../exchange.ts'
import type { HeaderUse } from '../openapi/headers.ts'
import { parseRange } from '../ranges.ts'
import type { Route } from '../route.ts'

const documentedHeaders: HeaderUse = {
  'Docker-Content-Digest': 'always',
  ETag: 'always',
  'Accept-Ranges': 'always',
  'Content-Disposition': 'always',
  'Content-Security-Policy': 'always',
}
const content = { 'application/octet-stream': 'bytes' } as const

export const blobRoutes: readonly Route[] = [
  {
    operationId: 'getBlob',
    method: 'GET',
    pattern: '/{name}/blobs/{digest}',
    access: 'repository',
    right: 'pull',
    handle: getBlob,
    summary: 'Get a blob or a part of it',
    parameters: ['range', 'ifRange', 'ifNoneMatch'],
    answers: {
      200: { description: 'The whole blob.', headers: documentedHeaders, content },
      206: { description: 'The part.', headers: { ...documentedHeaders, 'Content-Range': 'always' }, content },
      304: { description: 'Not changed.', headers: { 'Docker-Content-Digest': 'always', ETag: 'always' } },
      307: {
        description: 'With the setting `storage.redirect`: the blob store itself sends the blob, or a range of it.',
        headers: { Location: 'always', 'Docker-Content-Digest': 'always', 'Cache-Control': 'always' },
      },
    },
    refusals: ['name-unknown', 'blob-unknown', 'range-unsatisfiable'],
    notForHead: { statuses: [206, 307], refusals: ['range-unsatisfiable'] },
  },
  {
    operationId: 'deleteBlob',
    method: 'DELETE',
    pattern: '/{name}/blobs/{digest}',
    access: 'repository',
    right: 'delete',
    handle: deleteBlobByDigest,
    summary: 'Remove a blob from an image',
    description: 'Refused while a manifest of the image uses the blob.',
    answers: { 202: { description: 'It is removed.' } },
    refusals: ['digest-invalid', 'digest-unsupported', 'name-unknown', 'blob-unknown', 'blob-in-use'],
  },
]

function getBlob(exchange: RepositoryExchange): Awaitable<Answer> {
  const { app, repositoryKey, path, method, request } = exchange
  const digest = path['digest'] ?? ''
  if (!isDigest(digest)) throw new RegistryRefusal('blob-unknown', { digest: digest.slice(0, 255) })
  if (method === 'HEAD') {
    return andThen(describeBlob(app, repositoryKey, digest), (sizeBytes) => {
      if (isUnchanged(request.headers, digest)) return notModified(digest)
      return { status: 200, headers: headersOf(digest), lengthBytes: sizeBytes }
    })
  }
  return andThen(openBlob(app, repositoryKey, digest), (blob) => sendBlob(exchange, digest, blob))
}

function sendBlob(
  exchange: RepositoryExchange,
  digest: Digest,
  { sizeBytes, open, linkFor }: FoundBlob,
): Awaitable<Answer> {
  const { app, request } = exchange
  if (isUnchanged(request.headers, digest)) return notModified(digest)
  const link = app.redirects?.appliesTo(request, exchange.peers) ? linkFor(app.redirects.lifetimeSeconds) : undefined
  if (link !== undefined) return redirectTo(link, digest)

  const range = parseRange(rangeHeader(request.headers, digest), sizeBytes)
  if (range === undefined) {
    return andThen(open(), (body) => ({ status: 200, headers: headersOf(digest), body, lengthBytes: sizeBytes }))
  }
  const headers = new Headers(headersOf(digest))
  headers.set('content-range', `bytes ${range.first}-${range.last}/${sizeBytes}`)
  const lengthBytes = range.last - range.first + 1
  return andThen(open(range), (body) => ({ status: 206, headers, body, lengthBytes }))
}

const contentHeaders = new ContentHeaders({ 'accept-ranges': 'bytes', 'content-disposition': 'attachment' })

function headersOf(digest: Digest): Headers {
  return contentHeaders.of(digest, 'application/octet-stream')
}

/** Clients repeat `Range` at the store. The URL gives access to anyone who knows it, so it must not be cached. */
function redirectTo(link: string, digest: Digest): Answer {
  const headers = { location: link, 'docker-content-digest': digest, 'cache-control': 'no-store' }
  return { status: 307, headers, lengthBytes: 0 }
}

/** RFC 9110, 13.1.5: `Range` is ignored if `If-Range` names another version of the content. */
function rangeHeader(headers: Headers, digest: string): string | null {
  const condition = headers.get('if-range')
  return condition !== null && condition !== `"${digest}"` ? null : headers.get('range')
}

async function deleteBlobByDigest({ app, repositoryKey, path }: RepositoryExchange): Promise<Answer> {
  await deleteBlob(app, repositoryKey, parseDigest(path['digest'] ?? ''))
  return { status: 202, headers: {} }
}
