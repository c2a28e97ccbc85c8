// What a registry may get wrong in headers and uploads.
import { changed, type Fault, pathOf, queryOf } from './fault.ts'

const wrongDigest = `sha256:${'0'.repeat(64)}`

const headerFaults: readonly Fault[] = [
  {
    what: 'adds a charset to each Content-Type',
    spoil(_request, answer) {
      const type = answer.headers.get('content-type')
      return type === null ? undefined : changed(answer, { headers: { 'content-type': `${type}; charset=utf-8` } })
    },
    noticedBy: ['image/pull', 'image/head', 'index/push', 'empty/referrers', 'image/tag-list'],
    reason: /content-type must be/,
  },
  {
    what: 'names a wrong digest',
    spoil(_request, answer) {
      if (!answer.headers.has('docker-content-digest')) return undefined
      return changed(answer, { headers: { 'docker-content-digest': wrongDigest } })
    },
    noticedBy: ['sha256 blobs/post only', 'sha512 blobs/chunked multi', 'image/push', 'tag-param-sha512/push'],
    reason: /docker-content-digest must be/,
  },
  {
    what: 'names no digest on reads',
    spoil({ method }, answer) {
      return method === 'GET' || method === 'HEAD'
        ? changed(answer, { headers: { 'docker-content-digest': '' } })
        : undefined
    },
    noticedBy: [
      'sha256 blobs/stream',
      'image/head',
      'image/pull',
      'sha512/pull',
      'sha256 blobs/range requests/range 500-',
    ],
    reason: /docker-content-digest must be .* absent/,
  },
  {
    what: 'gives a Location that leads away from its mount',
    spoil(_request, answer) {
      const location = answer.headers.get('location')
      return location === null ? undefined : changed(answer, { headers: { location: `/elsewhere${location}` } })
    },
    noticedBy: ['sha256 blobs/post only', 'sha256 blobs/post+put', 'sha256 blobs/mount', 'image/push'],
    reason: /must lead to/,
  },
  {
    what: 'gives no Location',
    spoil: (_request, answer) => changed(answer, { headers: { location: '' } }),
    noticedBy: ['sha512 blobs/stream', 'sha256 blobs/post cancel', 'nested-index/push'],
    reason: /must carry a Location/,
  },
  {
    what: 'says on HEAD that everything is empty',
    spoil: ({ method }, answer) =>
      method === 'HEAD' ? changed(answer, { headers: { 'content-length': '0' } }) : undefined,
    noticedBy: ['sha256 blobs/post only', 'image/head'],
    reason: /content-length must be/,
  },
  {
    what: 'admits anonymous callers',
    spoil: (_request, answer) => (answer.status === 401 ? changed(answer, { status: 200 }) : undefined),
    noticedBy: ['ping'],
    reason: /status must be 401/,
  },
]

const uploadFaults: readonly Fault[] = [
  {
    what: 'takes chunks out of order',
    spoil(request, answer) {
      if (answer.status !== 416 || request.method !== 'PATCH') return undefined
      return changed(answer, { status: 202, headers: { location: pathOf(request) } })
    },
    noticedBy: ['sha256 blobs/chunked out-of-order', 'sha512 blobs/chunked out-of-order and put chunk'],
    reason: /status must be 416/,
  },
  {
    what: 'takes a last chunk out of order',
    spoil: ({ method }, answer) =>
      answer.status === 416 && method === 'PUT' ? changed(answer, { status: 201 }) : undefined,
    noticedBy: ['sha256 blobs/chunked out-of-order and put chunk'],
    reason: /status must be 416/,
  },
  {
    what: 'forgets after a wrong chunk how far it was',
    spoil: (_request, answer) => (answer.status === 204 ? changed(answer, { headers: { range: '0-0' } }) : undefined),
    noticedBy: ['sha256 blobs/chunked out-of-order'],
    reason: /range must be/,
  },
  {
    what: 'wants a PUT after the single POST',
    spoil: ({ method }, answer) => (method === 'POST' ? changed(answer, { status: 202 }) : undefined),
    noticedBy: ['sha256 blobs/post only', 'sha256 blobs/mount', 'sha512 blobs/mount anonymous'],
    reason: /status must be 201/,
  },
  {
    what: 'mounts blobs that are not there',
    spoil: (request, answer) => (queryOf(request).has('mount') ? changed(answer, { status: 201 }) : undefined),
    noticedBy: ['sha256 blobs/mount missing', 'sha512 blobs/mount missing'],
    reason: /status must be 202/,
  },
  {
    what: 'knows no cancelling',
    spoil: (request, answer) =>
      request.method === 'DELETE' && pathOf(request).includes('/uploads/')
        ? changed(answer, { status: 405 })
        : undefined,
    noticedBy: ['sha256 blobs/post cancel'],
    reason: /status must be 204/,
  },
  {
    what: 'believes every digest',
    spoil: (_request, answer) => (answer.status === 400 ? changed(answer, { status: 201, body: null }) : undefined),
    noticedBy: [
      'sha256 blobs/bad digest post only',
      'sha256 blobs/bad digest post+put',
      'sha512 blobs/bad digest chunked',
      'sha512 blobs/bad digest chunked and put chunk',
      'sha256 blobs/bad digest stream',
      'bad-digest-image/push',
      'invalid-digest-format/manifest-put',
    ],
    reason: /status must be 400/,
  },
  {
    what: 'wants to know the length beforehand',
    spoil: ({ headers }, answer) => (headers.has('transfer-encoding') ? changed(answer, { status: 411 }) : undefined),
    noticedBy: ['sha256 blobs/stream', 'image/push'],
    reason: /status must be 20[12]/,
  },
]

export const wireFaults: readonly Fault[] = [...headerFaults, ...uploadFaults]
