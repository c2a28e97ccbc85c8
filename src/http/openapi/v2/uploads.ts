import type { HeaderUse } from '../headers.ts'
import type { Alias, DocumentedAnswer, Operation } from '../operation.ts'

const path = '/v2/{image}/blobs/uploads/{id}'
const session: HeaderUse = { Location: 'always', Range: 'always', 'Docker-Upload-UUID': 'always' }
const bytes = { required: false, content: { 'application/octet-stream': 'bytes' } } as const
const stored: DocumentedAnswer = {
  description: 'The blob is here.',
  headers: { Location: 'always', 'Docker-Content-Digest': 'always' },
}

export const uploadAliases: Readonly<Record<string, Alias>> = {
  postUploadWithoutSlash: { of: 'postUpload', reason: 'Without the slash at the end of the path it is the same.' },
}

export const uploadOperations: readonly Operation[] = [
  {
    operationId: 'postUpload',
    part: 'registry',
    method: 'post',
    path: '/v2/{image}/blobs/uploads/',
    summary: 'Begin an upload, mount a blob, or upload one at once',
    description: 'A blob that cannot be mounted is answered with the upload that was begun for it.',
    caller: 'push',
    parameters: ['image', 'mount', 'from', 'wholeBlob', 'digestAlgorithm', 'contentRange'],
    requestBody: bytes,
    answers: { 201: stored, 202: { description: 'Go on at `Location`.', headers: session } },
    refusals: [
      'disk-low',
      'digest-invalid',
      'digest-unsupported',
      'digest-mismatch',
      'content-range-invalid',
      'content-length-mismatch',
      'blob-too-large',
      'too-many-uploads',
    ],
  },
  {
    operationId: 'patchUpload',
    part: 'registry',
    method: 'patch',
    path,
    summary: 'Append bytes to an upload',
    caller: 'push',
    parameters: ['image', 'uploadId', 'contentRange'],
    requestBody: bytes,
    answers: { 202: { description: 'The bytes are safe.', headers: session } },
    refusals: [
      'disk-low',
      'content-range-invalid',
      'content-length-mismatch',
      'blob-too-large',
      'upload-unknown',
      'upload-out-of-order',
      'upload-busy',
    ],
  },
  {
    operationId: 'putUpload',
    part: 'registry',
    method: 'put',
    path,
    summary: 'Close an upload, with its last bytes or without',
    description: 'Can be repeated with the same digest.',
    caller: 'push',
    parameters: ['image', 'uploadId', 'closingDigest', 'contentRange'],
    requestBody: bytes,
    answers: { 201: stored },
    refusals: [
      'disk-low',
      'digest-invalid',
      'digest-unsupported',
      'digest-mismatch',
      'content-range-invalid',
      'content-length-mismatch',
      'blob-too-large',
      'upload-unknown',
      'upload-out-of-order',
      'upload-busy',
    ],
  },
  {
    operationId: 'getUpload',
    part: 'registry',
    method: 'get',
    path,
    summary: 'How much of an upload is here',
    caller: 'push',
    parameters: ['image', 'uploadId'],
    answers: { 204: { description: '`Range` tells.', headers: session } },
    refusals: ['upload-unknown'],
  },
  {
    operationId: 'deleteUpload',
    part: 'registry',
    method: 'delete',
    path,
    summary: 'Cancel an upload',
    caller: 'push',
    parameters: ['image', 'uploadId'],
    answers: { 204: { description: 'It is forgotten.' } },
    refusals: ['upload-unknown'],
  },
]
