import { type Digest, parseDigest, parseDigestAlgorithm } from '../../oci/digest.ts'
import { RegistryRefusal } from '../../oci/errors.ts'
import { isRepositoryName } from '../../oci/names.ts'
import type { UploadId, UploadOwner } from '../../ports/uploads.ts'
import { mountBlob } from '../../registry/blobs.ts'
import type { IncomingChunk } from '../../registry/upload-turn.ts'
import {
  appendToUpload,
  cancelUpload,
  describeUpload,
  finishUpload,
  parseUploadId,
  startUpload,
  uploadAtOnce,
} from '../../registry/uploads.ts'
import type { Answer, RepositoryExchange } from '../exchange.ts'
import { blobLocation, uploadLocation } from '../links.ts'
import { parseChunkRange, receivedRange } from '../ranges.ts'
import { announcedLength } from '../request-body.ts'

function ownerOf({ scope, principal }: RepositoryExchange): UploadOwner {
  return { ...scope, subject: principal.subject }
}

/**
 * POST /v2/{name}/blobs/uploads/, in its four forms: plain; `?digest=` with the whole blob as the body;
 * `?mount=` with or without `from=`; `?digest-algorithm=`. A mount that cannot be made opens a session instead.
 */
export async function postUpload(exchange: RepositoryExchange): Promise<Answer> {
  const { app, noteLoss, target, principal, scope } = exchange
  const mount = target.query.get('mount')
  if (mount !== null) {
    const digest = parseDigest(mount)
    const from = target.query.get('from') ?? undefined
    const isMountable = from === undefined || isRepositoryName(from)
    if (isMountable && (await mountBlob(app, principal, scope, digest, from))) return created(exchange, digest)
    return opened(exchange)
  }
  const whole = target.query.get('digest')
  if (whole !== null) {
    const digest = parseDigest(whole)
    await uploadAtOnce({ ...app, noteLoss }, ownerOf(exchange), digest, chunkOf(exchange))
    return created(exchange, digest)
  }
  // Only told in advance; the closing request's digest decides. One that could never be closed is refused now.
  const algorithm = target.query.get('digest-algorithm')
  if (algorithm !== null) parseDigestAlgorithm(algorithm)
  return opened(exchange)
}

async function opened(exchange: RepositoryExchange): Promise<Answer> {
  const upload = await startUpload(exchange.app, ownerOf(exchange), 'free')
  return { status: 202, headers: { ...sessionHeaders(exchange, upload.id, 0), 'docker-upload-uuid': upload.id } }
}

function created({ mount, scope }: RepositoryExchange, digest: Digest): Answer {
  const location = blobLocation(mount, scope.repository, digest)
  return { status: 201, headers: { location, 'docker-content-digest': digest } }
}

function sessionHeaders({ mount, scope }: RepositoryExchange, id: UploadId, received: number): Record<string, string> {
  return { location: uploadLocation(mount, scope.repository, id), range: receivedRange(received) }
}

/** What the request says of the bytes that it brings. */
function chunkOf({ request, body }: RepositoryExchange): IncomingChunk {
  const range = parseChunkRange(request.headers.get('content-range'))
  const length = announcedLength(request)
  if (range !== undefined && length !== undefined && length !== range.lengthBytes) {
    throw new RegistryRefusal('content-length-mismatch', { announced: range.lengthBytes, received: length })
  }
  return {
    body: body(),
    first: range?.first,
    lengthBytes: range?.lengthBytes ?? length,
    // Bun makes the signal when it is asked for, and few requests need it.
    get signal() {
      return request.signal
    },
  }
}

/** PATCH /v2/{name}/blobs/uploads/{id}, with `Content-Range` or, as one stream, without. */
export async function patchUpload(exchange: RepositoryExchange): Promise<Answer> {
  const id = parseUploadId(exchange.path['id'] ?? '')
  const { app, noteLoss } = exchange
  const received = await appendToUpload({ ...app, noteLoss }, ownerOf(exchange), id, chunkOf(exchange))
  return { status: 202, headers: { ...sessionHeaders(exchange, id, received), 'docker-upload-uuid': id } }
}

/** PUT /v2/{name}/blobs/uploads/{id}?digest=, with the last bytes or without. */
export async function putUpload(exchange: RepositoryExchange): Promise<Answer> {
  const id = parseUploadId(exchange.path['id'] ?? '')
  const digest = parseDigest(exchange.target.query.get('digest') ?? '')
  const { app, noteLoss } = exchange
  await finishUpload({ ...app, noteLoss }, ownerOf(exchange), id, digest, chunkOf(exchange))
  return created(exchange, digest)
}

/** GET /v2/{name}/blobs/uploads/{id} */
export async function getUpload(exchange: RepositoryExchange): Promise<Answer> {
  const id = parseUploadId(exchange.path['id'] ?? '')
  const received = await describeUpload(exchange.app, ownerOf(exchange), id)
  return { status: 204, headers: { ...sessionHeaders(exchange, id, received), 'docker-upload-uuid': id } }
}

/** DELETE /v2/{name}/blobs/uploads/{id} */
export async function deleteUpload(exchange: RepositoryExchange): Promise<Answer> {
  await cancelUpload(exchange.app, ownerOf(exchange), parseUploadId(exchange.path['id'] ?? ''))
  return { status: 204, headers: {} }
}
