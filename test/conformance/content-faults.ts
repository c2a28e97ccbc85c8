// What a registry may get wrong with content and lists.
import { mediaTypes } from './content.ts'
import { changed, entriesOf, type Fault, pathOf, queryOf, withJson } from './fault.ts'

const storageFaults: readonly Fault[] = [
  {
    what: 'gives the whole blob for a part',
    spoil: (_request, answer) => (answer.status === 206 ? changed(answer, { status: 200 }) : undefined),
    noticedBy: ['sha256 blobs/range requests/range 500-1499', 'sha512 blobs/range requests/range -500'],
    reason: /status must be 206/,
  },
  {
    what: 'ignores ranges that cannot be',
    spoil: (request, answer) =>
      request.headers.has('range') && answer.status === 416 ? changed(answer, { status: 200 }) : undefined,
    noticedBy: ['sha256 blobs/range requests/range 500-0', 'sha256 blobs/range requests/range 5000-10000'],
    reason: /status must be 416/,
  },
  {
    what: 'writes manifests again',
    async spoil(request, answer) {
      if (request.method !== 'GET' || !pathOf(request).includes('/manifests/') || answer.status !== 200) return answer
      return withJson(answer, ({ schemaVersion, ...rest }) => ({ ...rest, schemaVersion }))
    },
    noticedBy: ['image/push', 'custom-fields/pull', 'data-field/pull'],
    reason: /the body must be the \d+ bytes that were sent/,
  },
  {
    what: 'refuses images',
    spoil: (request, answer) =>
      request.method === 'PUT' && request.headers.get('content-type') === mediaTypes.image && answer.status === 201
        ? changed(answer, { status: 413 })
        : undefined,
    noticedBy: ['large-manifest/push', 'no-layers/push', 'sparse/push'],
    reason: /status must be 201/,
  },
  {
    what: 'keeps for a while what was deleted',
    spoil: ({ method }, answer) =>
      method === 'HEAD' && answer.status === 404 ? changed(answer, { status: 200 }) : undefined,
    noticedBy: ['sha256 blobs/post+put', 'image/delete', 'sha512/delete'],
    reason: /status must be 404/,
  },
  {
    what: 'deletes nothing',
    spoil: ({ method }, answer) => (method === 'DELETE' ? changed(answer, { status: 405 }) : undefined),
    noticedBy: ['sha512 blobs/emptyJSON', 'index/delete', 'artifact/delete'],
    reason: /status must be 20[24]/,
  },
  {
    what: 'refuses without a reason that clients can read',
    spoil: ({ method }, answer) =>
      answer.status >= 400 && method !== 'HEAD'
        ? changed(answer, { body: '{"errors":[{"code":"NO_IDEA"}]}' })
        : undefined,
    noticedBy: [
      'missing-manifest/by-digest',
      'missing-manifest/by-tag',
      'empty/tag list',
      'invalid-digest-format/manifest-get',
    ],
    reason: /must have a code of the distribution-spec's list/,
  },
]

const listFaults: readonly Fault[] = [
  {
    what: 'does not understand last',
    spoil(request, answer) {
      if (!queryOf(request).has('last')) return undefined
      return withJson(answer, (list) => ({ ...list, tags: ['image'] }))
    },
    noticedBy: ['image/tag-list', 'artifacts-with-subject/tag-list'],
    reason: /the tags must be/,
  },
  {
    what: 'says null for no tags',
    spoil: (request, answer) =>
      pathOf(request).endsWith('/tags/list') ? withJson(answer, (list) => ({ ...list, tags: null })) : undefined,
    noticedBy: ['sha512/tag-list', 'index/tag-list'],
    reason: /the tags must be/,
  },
  {
    what: 'does not know of subjects',
    spoil: (_request, answer) => changed(answer, { headers: { 'oci-subject': '' } }),
    noticedBy: ['artifacts-with-subject/push', 'index-with-subject/push', 'missing-subject/push'],
    reason: /oci-subject must be/,
  },
  {
    what: 'does not know of tag parameters',
    spoil: (_request, answer) => changed(answer, { headers: { 'oci-tag': '' } }),
    noticedBy: ['tag-param-sha256/push', 'tag-param-sha512/push'],
    reason: /oci-tag must name/,
  },
  {
    what: 'does not say that it filtered',
    spoil: (_request, answer) => changed(answer, { headers: { 'oci-filters-applied': '' } }),
    noticedBy: ['artifacts-with-subject/referrers', 'index-with-subject/referrers'],
    reason: /oci-filters-applied must name/,
  },
  {
    what: 'leaves annotations out of the referrers',
    spoil(request, answer) {
      if (!pathOf(request).includes('/referrers/')) return undefined
      return withJson(answer, (list) => ({
        ...list,
        manifests: entriesOf(list).map(({ annotations: _, ...rest }) => rest),
      }))
    },
    noticedBy: ['artifacts-with-subject/referrers', 'missing-subject/referrers'],
    reason: /the referrers must be/,
  },
  {
    what: 'never lists a referrer',
    spoil(request, answer) {
      if (!pathOf(request).includes('/referrers/')) return undefined
      return withJson(answer, (list) => ({ ...list, manifests: [] }))
    },
    noticedBy: ['index-with-subject/referrers', 'missing-subject/referrers'],
    reason: /the referrers must be/,
  },
  {
    what: 'has no referrers for a repository that is not there',
    spoil: (request, answer) =>
      pathOf(request).includes('/referrers/') ? changed(answer, { status: 404 }) : undefined,
    noticedBy: ['empty/referrers'],
    reason: /status must be 200/,
  },
]

export const contentFaults: readonly Fault[] = [...storageFaults, ...listFaults]
