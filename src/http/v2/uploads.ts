import { type Digest, parseDigest, parseDigestAlgorithm } from '../../oci/digest.ts'
import { type Refusal, RegistryRefusal } from '../../oci/errors.ts'
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
import type { Answer } from '../answer.ts'
import type { RepositoryExchange } from '../exchange.ts'
import { blobLocation, uploadLocation } from '../mounts.ts'
import type { HeaderUse } from '../openapi/headers.ts'
import { parseChunkRange, receivedRange } from '../ranges.ts'
import { announcedLength } from '../request-body.ts'
import type { DocumentedAnswer, Route } from '../route.ts'

const documentedSession: HeaderUse = { Location: 'always', Range: 'always', 'Docker-Upload-UUID': 'always' }
const documentedBytes = { required: false, content: { 'application/octet-stream': 'bytes' } } as const
const blobStored: DocumentedAnswer = {
  description: 'The blob is stored.',
  headers: { Location: 'always', 'Docker-Content-Digest': 'always' },
}

const ofDigest: readonly Refusal[] = ['digest-invalid', 'digest-unsupported', 'digest-mismatch']
const ofReceivedBytes: readonly Refusal[] = [
  'disk-low',
  'content-range-invalid',
  'content-length-mismatch',
  'blob-too-large',
]
const ofContinuedUpload: readonly Refusal[] = ['upload-unknown', 'upload-out-of-order', 'upload-busy']

export const uploadRoutes: readonly Route[] = [
  {
    operationId: 'postUpload',
    method: 'POST',
    pattern: '/{name}/blobs/uploads/',
    access: 'repository',
    right: 'push',
    handle: postUpload,
    summary: 'Start an upload, mount a blob, or upload a whole blob',
    description: 'If a blob cannot be mounted, the answer is an upload for it.',
    parameters: ['mount', 'from', 'wholeBlob', 'digestAlgorithm', 'contentRange'],
    requestBody: documentedBytes,
    answers: { 201: blobStored, 202: { description: 'Continue at `Location`.', headers: documentedSession } },
    refusals: ['quota-exceeded', ...ofDigest, ...ofReceivedBytes, 'too-many-uploads'],
  },
  {
    operationId: 'postUploadWithoutSlash',
    method: 'POST',
    pattern: '/{name}/blobs/uploads',
    access: 'repository',
    right: 'push',
    handle: postUpload,
    aliasOf: 'postUpload',
    reason: 'The path without the slash at its end is the same.',
  },
  {
    operationId: 'patchUpload',
    method: 'PATCH',
    pattern: '/{name}/blobs/uploads/{id}',
    access: 'repository',
    right: 'push',
    handle: patchUpload,
    summary: 'Append bytes to an upload',
    parameters: ['contentRange'],
    requestBody: documentedBytes,
    answers: { 202: { description: 'The bytes are stored durably.', headers: documentedSession } },
    refusals: ['quota-exceeded', ...ofReceivedBytes, ...ofContinuedUpload],
  },
  {
    operationId: 'putUpload',
    method: 'PUT',
    pattern: '/{name}/blobs/uploads/{id}',
    access: 'repository',
    right: 'push',
    handle: putUpload,
    summary: 'Close an upload; the body may contain its last bytes',
    description: 'Can be repeated with the same digest.',
    parameters: ['closingDigest', 'contentRange'],
    requestBody: documentedBytes,
    answers: { 201: blobStored },
    refusals: ['quota-exceeded', ...ofDigest, ...ofReceivedBytes, ...ofContinuedUpload],
  },
  {
    operationId: 'getUpload',
    method: 'GET',
    pattern: '/{name}/blobs/uploads/{id}',
    access: 'repository',
    right: 'push',
    handle: getUpload,
    summary: 'Get the progress of an upload',
    answers: { 204: { description: '`Range` shows the received bytes.', headers: documentedSession } },
    refusals: ['upload-unknown'],
  },
  {
    operationId: 'deleteUpload',
    method: 'DELETE',
    pattern: '/{name}/blobs/uploads/{id}',
    access: 'repository',
    right: 'push',
    handle: deleteUpload,
    summary: 'Cancel an upload',
    answers: { 204: { description: 'The upload is removed.' } },
    refusals: ['upload-unknown'],
  },
]

function ownerOf({ repositoryKey, principal, account }: RepositoryExchange): UploadOwner {
  return { ...repositoryKey, subject: principal.subject, quota: account.quota }
}

/**
 * The request has four forms: plain; `?digest=` with the whole blob as the body; `?mount=` with or without `from=`;
 * `?digest-algorithm=`. If a blob cannot be mounted, an upload is started instead.
 */
async function postUpload(exchange: RepositoryExchange): Promise<Answer> {
  const { app, noteLoss, target, principal, repositoryKey } = exchange
  const mount = target.query.get('mount')
  if (mount !== null) {
    const digest = parseDigest(mount)
    const from = target.query.get('from') ?? undefined
    const isMountable = from === undefined || isRepositoryName(from)
    if (isMountable && (await mountBlob(app, principal, repositoryKey, digest, from)))
      return answerStored(exchange, digest)
    return answerStarted(exchange)
  }
  const whole = target.query.get('digest')
  if (whole !== null) {
    const digest = parseDigest(whole)
    await uploadAtOnce({ ...app, noteLoss }, ownerOf(exchange), digest, chunkOf(exchange))
    return answerStored(exchange, digest)
  }
  // The digest of the closing request decides. An algorithm that could never close the upload is refused now.
  const algorithm = target.query.get('digest-algorithm')
  if (algorithm !== null) parseDigestAlgorithm(algorithm)
  return answerStarted(exchange)
}

async function answerStarted(exchange: RepositoryExchange): Promise<Answer> {
  const upload = await startUpload(exchange.app, ownerOf(exchange), 'free')
  return { status: 202, headers: sessionHeaders(exchange, upload.id, 0) }
}

function answerStored({ mount, repositoryKey }: RepositoryExchange, digest: Digest): Answer {
  const location = blobLocation(mount, repositoryKey.repository, digest)
  return { status: 201, headers: { location, 'docker-content-digest': digest } }
}

function sessionHeaders(
  { mount, repositoryKey }: RepositoryExchange,
  id: UploadId,
  received: number,
): Record<string, string> {
  const location = uploadLocation(mount, repositoryKey.repository, id)
  return { location, range: receivedRange(received), 'docker-upload-uuid': id }
}

/** The bytes of the request, and what its headers say about them. */
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
    // Bun creates the signal at the first access, and few requests need it.
    get signal() {
      return request.signal
    },
  }
}

/** With `Content-Range`, or as one stream without it. */
async function patchUpload(exchange: RepositoryExchange): Promise<Answer> {
  const id = parseUploadId(exchange.path['id'] ?? '')
  const { app, noteLoss } = exchange
  const received = await appendToUpload({ ...app, noteLoss }, ownerOf(exchange), id, chunkOf(exchange))
  return { status: 202, headers: sessionHeaders(exchange, id, received) }
}

async function putUpload(exchange: RepositoryExchange): Promise<Answer> {
  const id = parseUploadId(exchange.path['id'] ?? '')
  const digest = parseDigest(exchange.target.query.get('digest') ?? '')
  const { app, noteLoss } = exchange
  await finishUpload({ ...app, noteLoss }, ownerOf(exchange), id, digest, chunkOf(exchange))
  return answerStored(exchange, digest)
}

async function getUpload(exchange: RepositoryExchange): Promise<Answer> {
  const id = parseUploadId(exchange.path['id'] ?? '')
  const received = await describeUpload(exchange.app, ownerOf(exchange), id)
  return { status: 204, headers: sessionHeaders(exchange, id, received) }
}

async function deleteUpload(exchange: RepositoryExchange): Promise<Answer> {
  await cancelUpload(exchange.app, ownerOf(exchange), parseUploadId(exchange.path['id'] ?? ''))
  return { status: 204, headers: {} }
}
