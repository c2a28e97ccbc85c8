// What a registry may get wrong in headers and bodies: each fault spoils one kind of answer, and the cases that it names must
// notice it.
import type { Asked, Change, Reply } from './case.ts'

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
  ...contentFaults,
]
