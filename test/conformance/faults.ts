// What a registry may get wrong: each fault spoils one kind of answer, and the cases that it names must notice it.
import type { Asked, Change, Reply } from './case.ts'
import { mediaTypes } from './data-set.ts'

export interface Fault {
  /** Completes "a registry that ...". */
  readonly what: string
  readonly spoil: (asked: Asked, answer: Reply) => Change | undefined
  /** Cases of the official suite. */
  readonly noticedBy: readonly string[]
  /** What the message of the failed check contains: a value that the check wanted. */
  readonly reason: string
}

const wanted = (text: string) => `-   "${text}`
const jsonOf = ({ bytes }: Reply) => JSON.parse(new TextDecoder().decode(bytes))
const isReferrers = ({ path }: Asked, { status }: Reply) => path.includes('/referrers/') && status === 200
/** Gives a header another value, in each answer that has the header. */
const setHeader =
  (name: string, change: (value: string) => string) =>
  (_: Asked, { headers }: Reply) => {
    const value = headers.get(name)
    return value === null ? undefined : { headers: { [name]: change(value) } }
  }
const setStatus =
  (status: number, isSpoiled: (asked: Asked, answer: Reply) => boolean) => (asked: Asked, answer: Reply) =>
    isSpoiled(asked, answer) ? { status } : undefined

const headerFaults: readonly Fault[] = [
  {
    what: 'adds a charset to each Content-Type',
    spoil: setHeader('content-type', (type) => `${type}; charset=utf-8`),
    noticedBy: ['image', 'index', 'empty/referrers', 'empty/tag list'],
    reason: wanted('content-type'),
  },
  {
    what: 'names a wrong digest',
    spoil: setHeader('docker-content-digest', () => `sha256:${'0'.repeat(64)}`),
    noticedBy: ['sha256 blobs/post only', 'sha512 blobs/chunked multi', 'image', 'tag-param-sha512'],
    reason: wanted('docker-content-digest'),
  },
  {
    what: 'names no digest on reads',
    spoil: ({ method }) =>
      ['GET', 'HEAD'].includes(method) ? { headers: { 'docker-content-digest': '' } } : undefined,
    noticedBy: ['sha256 blobs/stream', 'image', 'sha256 blobs/range requests/range 500-'],
    reason: wanted('docker-content-digest'),
  },
  {
    what: 'gives a Location that leads away from its mount',
    spoil: setHeader('location', (location) => `/elsewhere${location}`),
    noticedBy: ['sha256 blobs/post only', 'sha256 blobs/post+put', 'sha256 blobs/mount', 'image'],
    reason: 'to start with',
  },
  {
    what: 'gives no Location',
    spoil: setHeader('location', () => ''),
    noticedBy: ['sha512 blobs/stream', 'sha256 blobs/post cancel', 'nested-index'],
    reason: 'to start with',
  },
  {
    what: 'says on HEAD that everything is empty',
    spoil: ({ method }) => (method === 'HEAD' ? { headers: { 'content-length': '0' } } : undefined),
    noticedBy: ['sha256 blobs/post only', 'image'],
    reason: wanted('content-length'),
  },
  {
    what: 'accepts anonymous callers',
    spoil: setStatus(200, (_, { status }) => status === 401),
    noticedBy: ['ping'],
    reason: wanted('status": 401'),
  },
  {
    what: 'does not know subjects',
    spoil: setHeader('oci-subject', () => ''),
    noticedBy: ['artifacts-with-subject', 'index-with-subject', 'missing-subject'],
    reason: wanted('oci-subject'),
  },
  {
    what: 'does not know tag parameters',
    spoil: setHeader('oci-tag', () => ''),
    noticedBy: ['tag-param-sha256', 'tag-param-sha512'],
    reason: wanted('tag-param'),
  },
  {
    what: 'does not say that it filtered',
    spoil: setHeader('oci-filters-applied', () => ''),
    noticedBy: ['artifacts-with-subject', 'index-with-subject'],
    reason: wanted('oci-filters-applied'),
  },
]

const uploadFaults: readonly Fault[] = [
  {
    what: 'accepts chunks out of order',
    spoil: setStatus(202, ({ method }, { status }) => status === 416 && method === 'PATCH'),
    noticedBy: ['sha256 blobs/chunked out-of-order', 'sha512 blobs/chunked out-of-order and put chunk'],
    reason: wanted('status": 416'),
  },
  {
    what: 'accepts a last chunk out of order',
    spoil: setStatus(201, ({ method }, { status }) => status === 416 && method === 'PUT'),
    noticedBy: ['sha256 blobs/chunked out-of-order and put chunk'],
    reason: wanted('status": 416'),
  },
  {
    what: 'forgets the received bytes after a wrong chunk',
    spoil: (_, { status }) => (status === 204 ? { headers: { range: '0-0' } } : undefined),
    noticedBy: ['sha256 blobs/chunked out-of-order'],
    reason: wanted('range": "0-1023'),
  },
  {
    what: 'wants a PUT after the single POST',
    spoil: setStatus(202, ({ method }) => method === 'POST'),
    noticedBy: ['sha256 blobs/post only', 'sha256 blobs/mount', 'sha512 blobs/mount anonymous'],
    reason: wanted('status": 201'),
  },
  {
    what: 'mounts blobs that do not exist',
    spoil: setStatus(201, ({ path }) => path.includes('mount=')),
    noticedBy: ['sha256 blobs/mount missing', 'sha512 blobs/mount missing'],
    reason: wanted('status": 202'),
  },
  {
    what: 'cannot cancel an upload',
    spoil: setStatus(405, ({ method, path }) => method === 'DELETE' && path.includes('/uploads/')),
    noticedBy: ['sha256 blobs/post cancel'],
    reason: wanted('status": 204'),
  },
  {
    what: 'believes every digest',
    spoil: setStatus(201, (_, { status }) => status === 400),
    noticedBy: [
      ...['post only', 'post+put', 'chunked', 'chunked and put chunk', 'stream'].map(
        (how) => `sha256 blobs/bad digest ${how}`,
      ),
      'bad-digest-image/push',
      'invalid-digest-format/manifest-put',
    ],
    reason: wanted('status": 400'),
  },
  {
    what: 'wants to know the length beforehand',
    spoil: setStatus(411, ({ isStreamed }) => isStreamed),
    noticedBy: ['sha256 blobs/stream', 'image'],
    reason: wanted('status": 20'),
  },
]

const contentFaults: readonly Fault[] = [
  {
    what: 'gives the whole blob for a part',
    spoil: setStatus(200, (_, { status }) => status === 206),
    noticedBy: ['sha256 blobs/range requests/range 500-1499', 'sha512 blobs/range requests/range -500'],
    reason: wanted('status": 206'),
  },
  {
    what: 'ignores ranges that cannot be satisfied',
    spoil: setStatus(200, ({ headers }, { status }) => 'range' in headers && status === 416),
    noticedBy: ['sha256 blobs/range requests/range 500-0', 'sha256 blobs/range requests/range 5000-10000'],
    reason: wanted('status": 416'),
  },
  {
    what: 'formats manifests again',
    spoil({ method, path }, answer) {
      if (method !== 'GET' || !path.includes('/manifests/') || answer.status !== 200) return undefined
      const { schemaVersion, ...rest } = jsonOf(answer)
      return { json: { ...rest, schemaVersion } }
    },
    noticedBy: ['image', 'custom-fields', 'data-field'],
    reason: wanted('body'),
  },
  {
    what: 'refuses images',
    spoil: setStatus(413, ({ headers }, { status }) => headers['content-type'] === mediaTypes.image && status === 201),
    noticedBy: ['large-manifest', 'no-layers', 'sparse'],
    reason: wanted('status": 201'),
  },
  {
    what: 'keeps deleted content for a while',
    spoil: setStatus(200, ({ method }, { status }) => method === 'HEAD' && status === 404),
    noticedBy: ['sha256 blobs/post+put', 'image', 'sha512'],
    reason: wanted('status": 404'),
  },
  {
    what: 'deletes nothing',
    spoil: setStatus(405, ({ method }) => method === 'DELETE'),
    noticedBy: ['sha512 blobs/emptyJSON', 'index', 'artifact'],
    reason: wanted('status": 202'),
  },
  {
    what: 'refuses without a code that clients know',
    spoil: ({ method }, { status }) =>
      status >= 400 && method !== 'HEAD' ? { json: { errors: [{ code: 'NO_IDEA' }] } } : undefined,
    noticedBy: [
      'missing-manifest/by-digest',
      'missing-manifest/by-tag',
      'empty/tag list',
      'invalid-digest-format/manifest-get',
    ],
    reason: 'NO_IDEA',
  },
]

const listFaults: readonly Fault[] = [
  {
    what: 'does not understand last',
    spoil: ({ path }, answer) =>
      path.includes('last=') ? { json: { ...jsonOf(answer), tags: ['image'] } } : undefined,
    noticedBy: ['image', 'artifacts-with-subject'],
    reason: '"tags": [',
  },
  {
    what: 'says null for no tags',
    spoil: ({ path }, answer) =>
      path.endsWith('/tags/list') ? { json: { ...jsonOf(answer), tags: null } } : undefined,
    noticedBy: ['sha512', 'index'],
    reason: wanted('tags'),
  },
  {
    what: 'leaves annotations out of the referrers',
    spoil(asked, answer) {
      if (!isReferrers(asked, answer)) return undefined
      const { manifests, ...list } = jsonOf(answer)
      return {
        json: { ...list, manifests: manifests.map(({ annotations: _, ...rest }: Record<string, unknown>) => rest) },
      }
    },
    noticedBy: ['artifacts-with-subject', 'missing-subject'],
    reason: 'annotations',
  },
  {
    what: 'never lists a referrer',
    spoil: (asked, answer) => (isReferrers(asked, answer) ? { json: { ...jsonOf(answer), manifests: [] } } : undefined),
    noticedBy: ['index-with-subject', 'missing-subject'],
    reason: wanted('manifests'),
  },
  {
    what: 'has no referrers for an unknown repository',
    spoil: setStatus(404, isReferrers),
    noticedBy: ['empty/referrers'],
    reason: wanted('status": 200'),
  },
]

export const faults: readonly Fault[] = [...headerFaults, ...uploadFaults, ...contentFaults, ...listFaults]
