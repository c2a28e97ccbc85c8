// What the official suite is made of, written down apart from our cases so that none can be lost.
const once = [
  'ping',
  'empty/tag list',
  'empty/referrers',
  'missing-manifest/by-digest',
  'missing-manifest/by-tag',
  'invalid-digest-format/manifest-put',
  'invalid-digest-format/manifest-get',
  'bad-digest-image/push',
]

const blobs = [
  'get-missing',
  'post only',
  'post+put',
  'chunked single',
  'stream',
  'mount',
  'mount anonymous',
  'mount missing',
  'post cancel',
  'chunked multi',
  'chunked multi and put chunk',
  'chunked out-of-order',
  'chunked out-of-order and put chunk',
  'range requests/range 500-1499',
  'range requests/range 500-',
  'range requests/range -500',
  'range requests/range 2000-5000',
  'range requests/range 500-0',
  'range requests/range 5000-10000',
  'empty',
  'emptyJSON',
  'bad digest post only',
  'bad digest post+put',
  'bad digest chunked',
  'bad digest chunked and put chunk',
  'bad digest stream',
]

const dataSets = [
  'image',
  'image-uncompressed',
  'large-manifest',
  'index',
  'nested-index',
  'empty-index',
  'artifact',
  'artifact-index',
  'artifact-without-layers',
  'artifacts-with-subject',
  'index-with-subject',
  'missing-subject',
  'data-field',
  'non-distributable-layers',
  'custom-fields',
  'no-layers',
  'sparse',
  'sha512',
  'tag-param-sha256',
  'tag-param-sha512',
]

const withSubjects = ['artifacts-with-subject', 'index-with-subject', 'missing-subject']

export const officialCases: readonly string[] = [
  ...once,
  ...['sha256', 'sha512'].flatMap((algorithm) => blobs.map((name) => `${algorithm} blobs/${name}`)),
  ...dataSets.flatMap((set) => ['push', 'tag-list', 'head', 'pull', 'delete'].map((step) => `${set}/${step}`)),
  ...withSubjects.map((set) => `${set}/referrers`),
]
