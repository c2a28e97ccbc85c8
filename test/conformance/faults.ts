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
const [start, part] = ['to start with', 'blobs/range requests/range']
const badDigests = ['post only', 'post+put', 'chunked', 'chunked and put chunk', 'stream']

/** [what, a header, its other value in each answer that has it, who notices, why] */
const headerFaults: readonly (readonly [string, string, (value: string) => string, readonly string[], string?])[] = [
  [
    'adds a charset to each Content-Type',
    'content-type',
    (type) => `${type}; charset=utf-8`,
    ['image', 'empty/referrers'],
  ],
  [
    'names a wrong digest',
    'docker-content-digest',
    () => 'sha256:0',
    ['sha512 blobs/chunked multi', 'tag-param-sha512'],
  ],
  ['names no digest', 'docker-content-digest', () => '', ['sha256 blobs/stream', 'image', `sha256 ${part} 500-`]],
  [
    'gives a Location that leads away from its mount',
    'location',
    (to) => `/elsewhere${to}`,
    ['sha256 blobs/mount', 'image'],
    start,
  ],
  ['gives no Location', 'location', () => '', ['sha256 blobs/post cancel', 'nested-index'], start],
  ['says that everything is empty', 'content-length', () => '0', ['sha256 blobs/post only', 'image']],
  ['does not know subjects', 'oci-subject', () => '', ['artifacts-with-subject', 'missing-subject']],
  ['does not know tag parameters', 'oci-tag', () => '', ['tag-param-sha256', 'tag-param-sha512'], wanted('tag-param')],
  ['does not say that it filtered', 'oci-filters-applied', () => '', ['artifacts-with-subject', 'index-with-subject']],
]

type IsSpoiled = (asked: Asked, answer: Reply) => boolean
const has =
  (status: number, method?: string): IsSpoiled =>
  (asked, answer) =>
    answer.status === status && (method === undefined || asked.method === method)

/** [what, the other status, of which answers, who notices, the status that is wanted] */
const statusFaults: readonly (readonly [string, number, IsSpoiled, readonly string[], number])[] = [
  ['accepts anonymous callers', 200, has(401), ['ping'], 401],
  ['accepts chunks out of order', 202, has(416, 'PATCH'), ['sha256 blobs/chunked out-of-order'], 416],
  ['accepts a last chunk out of order', 201, has(416, 'PUT'), ['sha256 blobs/chunked out-of-order and put chunk'], 416],
  ['wants a PUT after the single POST', 202, has(201, 'POST'), ['sha256 blobs/post only', 'sha512 blobs/mount'], 201],
  ['mounts blobs that do not exist', 201, ({ path }) => path.includes('mount='), ['sha256 blobs/mount missing'], 202],
  ['cannot cancel an upload', 405, has(204, 'DELETE'), ['sha256 blobs/post cancel'], 204],
  ['believes every digest', 201, has(400), badDigests.map((how) => `sha256 blobs/bad digest ${how}`), 400],
  ['believes every manifest', 201, has(400), ['bad-digest-image/push', 'invalid-digest-format/manifest-put'], 400],
  ['wants to know the length', 411, ({ isStreamed }) => isStreamed, ['sha256 blobs/stream'], 202],
  ['gives the whole for a part', 200, has(206), [`sha256 ${part} 500-1499`, `sha512 ${part} -500`], 206],
  ['ignores bad ranges', 200, has(416, 'GET'), [`sha256 ${part} 500-0`, `sha256 ${part} 5000-10000`], 416],
  [
    'refuses images',
    413,
    ({ headers }, { status }) => headers['content-type'] === mediaTypes.image && status === 201,
    ['large-manifest', 'no-layers', 'sparse'],
    201,
  ],
  ['keeps deleted content for a while', 200, has(404, 'HEAD'), ['sha256 blobs/post+put', 'image', 'sha512'], 404],
  ['deletes nothing', 405, has(202, 'DELETE'), ['sha512 blobs/emptyJSON', 'index', 'artifact'], 202],
  ['has no referrers for an unknown repository', 404, isReferrers, ['empty/referrers'], 200],
]

const contentFaults: readonly Fault[] = [
  {
    what: 'forgets the received bytes after a wrong chunk',
    spoil: (_, { status }) => (status === 204 ? { headers: { range: '0-0' } } : undefined),
    noticedBy: ['sha256 blobs/chunked out-of-order'],
    reason: wanted('range": "0-1023'),
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
    what: 'refuses without a code that clients know',
    spoil: ({ method }, { status }) =>
      status >= 400 && method !== 'HEAD' ? { json: { errors: [{ code: 'NO_IDEA' }] } } : undefined,
    noticedBy: ['missing-manifest/by-digest', 'empty/tag list', 'invalid-digest-format/manifest-get'],
    reason: 'NO_IDEA',
  },
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
      return { json: { ...list, manifests: manifests.map((one: object) => ({ ...one, annotations: undefined })) } }
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
]

export const faults: readonly Fault[] = [
  ...headerFaults.map(([what, name, change, noticedBy, reason = wanted(name)]): Fault => {
    const spoil: Fault['spoil'] = (_, { headers }) => {
      const value = headers.get(name)
      return value === null ? undefined : { headers: { [name]: change(value) } }
    }
    return { what, spoil, noticedBy, reason }
  }),
  ...statusFaults.map(([what, status, isSpoiled, noticedBy, right]): Fault => {
    const spoil: Fault['spoil'] = (asked, answer) => (isSpoiled(asked, answer) ? { status } : undefined)
    return { what, spoil, noticedBy, reason: wanted(`status": ${right}`) }
  }),
  ...contentFaults,
]
