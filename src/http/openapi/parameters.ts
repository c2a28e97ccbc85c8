import {
  anyDigest,
  contentRange,
  dateTime,
  digest,
  digestAlgorithm,
  flag,
  imageName,
  keyName,
  manyTexts,
  type Schema,
  tag,
  tagOrDigest,
  tags,
  text,
  userName,
  uuid,
  wholeNumber,
} from './formats.ts'

interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly required?: true
  readonly description: string
  readonly schema: Schema
}

/**
 * The parameters by the names that routes use. Path parameters are keyed by the name in the path; see `operations.ts`.
 */
export const parameters = {
  image: {
    name: 'image',
    in: 'path',
    required: true,
    description:
      'Image (repository) name. It may contain slashes, which are not encoded in the path: `library/alpine`.',
    schema: imageName,
  },
  tag: {
    name: 'tag',
    in: 'path',
    required: true,
    description: 'Tag of the image, or digest of one of its manifests.',
    schema: tagOrDigest,
  },
  plainTag: { name: 'tag', in: 'path', required: true, description: 'Tag of the image.', schema: tag },
  since: {
    name: 'since',
    in: 'query',
    description: 'Only entries from this time on, with its zone, such as `2030-01-31T12:00:00Z`.',
    schema: dateTime,
  },
  until: { name: 'until', in: 'query', description: 'Only entries before this time.', schema: dateTime },
  actor: { name: 'actor', in: 'query', description: 'Only entries of this caller.', schema: text },
  action: { name: 'action', in: 'query', description: 'Only this action, such as `login`.', schema: text },
  repository: { name: 'repository', in: 'query', description: 'Only requests to this repository.', schema: text },
  outcome: { name: 'outcome', in: 'query', description: '`done` or `refused`.', schema: text },
  repositoryFilter: {
    name: 'repository',
    in: 'query',
    description: 'Only this repository.',
    schema: imageName,
  },
  at: {
    name: 'at',
    in: 'query',
    description: 'A time with its zone, such as `2030-01-31T12:00:00Z`. Default: now.',
    schema: dateTime,
  },
  digest: { name: 'digest', in: 'path', required: true, description: 'Digest of the blob.', schema: digest },
  manifestDigest: {
    name: 'digest',
    in: 'path',
    required: true,
    description: 'Digest of the manifest.',
    schema: digest,
  },
  dryRun: {
    name: 'dryRun',
    in: 'query',
    description: '`true`: change nothing, and tell the consequences.',
    schema: flag,
  },
  companions: {
    name: 'companions',
    in: 'query',
    description:
      '`true`: delete what belongs to the deleted images too: their referrers (also of referrers), the tags of cosign (`sha256-<hex>.sig`, `.att`, `.sbom`), and the manifests that only they list.',
    schema: flag,
  },
  images: {
    name: 'images',
    in: 'query',
    description: '`true`: delete the manifests that have no other tag too.',
    schema: flag,
  },
  match: {
    name: 'match',
    in: 'query',
    description:
      'Pattern of tags: `*` stands for any text, `?` for one character, `[0-9a]` for one of these characters, `{a,b}` for one of these texts.',
    schema: text,
  },
  namedTags: {
    name: 'tag',
    in: 'query',
    description: 'A tag. Can be given up to 100 times.',
    schema: tags,
  },
  user: { name: 'user', in: 'path', required: true, description: 'Name of the user.', schema: userName },
  webhook: { name: 'webhook', in: 'path', required: true, description: 'Name of the webhook.', schema: text },
  delivery: { name: 'delivery', in: 'path', required: true, description: 'The id of the delivery.', schema: text },
  deliveryState: {
    name: 'state',
    in: 'query',
    description: 'Only deliveries in this state: `pending`, `delivered` or `dead`.',
    schema: text,
  },
  key: { name: 'key', in: 'path', required: true, description: 'Name of the API key.', schema: keyName },
  scope: {
    name: 'scope',
    in: 'query',
    description: '`repository:<name>:pull,push,delete` or `registry:catalog:*`. Can be given more than once.',
    schema: manyTexts,
  },
  tokenService: { name: 'service', in: 'query', description: 'The service in the challenge.', schema: text },
  subject: {
    name: 'digest',
    in: 'path',
    required: true,
    description: 'Digest of the subject manifest. The manifest need not exist.',
    schema: anyDigest,
  },
  id: {
    name: 'id',
    in: 'path',
    required: true,
    description: 'The id of the upload, as in `Location`.',
    schema: uuid,
  },
  artifactType: {
    name: 'artifactType',
    in: 'query',
    description: 'Only referrers of this artifact type. If it is given more than once, referrers of any of the types.',
    schema: text,
  },
  n: {
    name: 'n',
    in: 'query',
    description: 'The largest number of entries. The server has a limit of its own; `Link` leads to the rest.',
    schema: wholeNumber,
  },
  search: { name: 'search', in: 'query', description: 'A part of the name.', schema: text },
  repositorySort: {
    name: 'sort',
    in: 'query',
    description: '`name` (default); or `size`, `pushed` or `pulled`: the largest or the latest first.',
    schema: text,
  },
  last: { name: 'last', in: 'query', description: 'The page begins after this entry.', schema: text },
  moreTags: {
    name: 'tag',
    in: 'query',
    description: 'With a digest in the path: a tag for the manifest. Can be given more than once.',
    schema: tags,
  },
  mount: {
    name: 'mount',
    in: 'query',
    description: 'Link this blob of the account instead of uploading it.',
    schema: digest,
  },
  from: {
    name: 'from',
    in: 'query',
    description: 'The image that contains the blob to mount. Without it, any image that the caller may pull from.',
    schema: imageName,
  },
  wholeBlob: {
    name: 'digest',
    in: 'query',
    description: 'Digest of the blob, which is the whole body.',
    schema: digest,
  },
  closingDigest: {
    name: 'digest',
    in: 'query',
    required: true,
    description: 'Digest of the whole blob.',
    schema: digest,
  },
  digestAlgorithm: {
    name: 'digest-algorithm',
    in: 'query',
    description: 'The algorithm of the digest in the closing request.',
    schema: digestAlgorithm,
  },
  ifNoneMatch: {
    name: 'If-None-Match',
    in: 'header',
    description: 'The answer is 304 if the content has one of these entity tags.',
    schema: text,
  },
  range: { name: 'Range', in: 'header', description: '`bytes=<first>-<last>`: one part of the blob.', schema: text },
  ifRange: {
    name: 'If-Range',
    in: 'header',
    description: '`Range` applies only if the content has this entity tag.',
    schema: text,
  },
  contentRange: {
    name: 'Content-Range',
    in: 'header',
    description: '`<first>-<last>`, without a unit: the position of the body in the blob.',
    schema: contentRange,
  },
} as const satisfies Readonly<Record<string, Parameter>>

export type ParameterName = keyof typeof parameters
