import type { HeaderUse } from '../headers.ts'
import type { Operation } from '../operation.ts'

const path = '/v2/{image}/blobs/{digest}'
const content = { 'application/octet-stream': 'bytes' } as const
const headers: HeaderUse = {
  'Docker-Content-Digest': 'always',
  ETag: 'always',
  'Accept-Ranges': 'always',
  'Content-Disposition': 'always',
  'Content-Security-Policy': 'always',
}

export const blobOperations: readonly Operation[] = [
  {
    operationId: 'getBlob',
    part: 'registry',
    method: 'get',
    path,
    summary: 'A blob, or a part of it',
    caller: 'pull',
    parameters: ['image', 'digest', 'range', 'ifRange', 'ifNoneMatch'],
    answers: {
      200: { description: 'All of it.', headers, content },
      206: { description: 'The part.', headers: { ...headers, 'Content-Range': 'always' }, content },
      304: { description: 'Not changed.', headers: { 'Docker-Content-Digest': 'always', ETag: 'always' } },
      307: {
        description: 'With `storage.redirect`: where the blob store itself gives the bytes, a range of them too.',
        headers: { Location: 'always', 'Docker-Content-Digest': 'always', 'Cache-Control': 'always' },
      },
    },
    refusals: ['name-unknown', 'blob-unknown', 'range-unsatisfiable'],
    notForHead: { statuses: [206, 307], refusals: ['range-unsatisfiable'] },
  },
  {
    operationId: 'deleteBlob',
    part: 'registry',
    method: 'delete',
    path,
    summary: 'Take a blob out of an image',
    description: 'Refused while a manifest of the image uses it.',
    caller: 'delete',
    parameters: ['image', 'digest'],
    answers: { 202: { description: 'It is gone.' } },
    refusals: ['digest-invalid', 'digest-unsupported', 'name-unknown', 'blob-unknown', 'blob-in-use'],
  },
]
