import {
  anyDigest,
  contentRange,
  digest,
  digestAlgorithm,
  imageName,
  keyName,
  tagOrDigest,
  tags,
  userName,
} from './formats.ts'
import { manyTexts, type Schema, text, uuid, wholeNumber } from './schemas.ts'

interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly required?: true
  readonly description: string
  readonly schema: Schema
}

/** Every parameter once, by the name under which operations ask for it. Those of spec.md have its names. */
export const parameters = {
  image: {
    name: 'image',
    in: 'path',
    required: true,
    description: 'Image (repository) name. It may hold slashes, which stand in the path as they are: `library/alpine`.',
    schema: imageName,
  },
  tag: {
    name: 'tag',
    in: 'path',
    required: true,
    description: 'Tag of the image, or digest of one of its manifests.',
    schema: tagOrDigest,
  },
  digest: { name: 'digest', in: 'path', required: true, description: 'Digest of the blob.', schema: digest },
  user: { name: 'user', in: 'path', required: true, description: 'Name of the user.', schema: userName },
  key: { name: 'key', in: 'path', required: true, description: 'Name of the API key.', schema: keyName },
  scope: {
    name: 'scope',
    in: 'query',
    description: '`repository:<name>:pull,push,delete` or `registry:catalog:*`; may be given more than once.',
    schema: manyTexts,
  },
  tokenService: { name: 'service', in: 'query', description: 'As the challenge names it.', schema: text },
  subject: {
    name: 'digest',
    in: 'path',
    required: true,
    description: 'Digest of the subject manifest, which need not exist (yet).',
    schema: anyDigest,
  },
  id: {
    name: 'id',
    in: 'path',
    required: true,
    description: 'The upload, as `Location` names it.',
    schema: uuid,
  },
  artifactType: {
    name: 'artifactType',
    in: 'query',
    description: 'Only referrers of this artifact type. It can be given more than once: then of any of these types.',
    schema: text,
  },
  n: {
    name: 'n',
    in: 'query',
    description: 'Length of the page. Above the limit of the server, the limit counts, and `Link` leads to the rest.',
    schema: wholeNumber,
  },
  last: { name: 'last', in: 'query', description: 'The page begins behind this entry.', schema: text },
  moreTags: {
    name: 'tag',
    in: 'query',
    description: 'With a digest in the path: a tag that shall point to the manifest; may be given more than once.',
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
    description: 'The image that has the blob to mount; without it, any that the caller may pull from.',
    schema: imageName,
  },
  wholeBlob: {
    name: 'digest',
    in: 'query',
    description: 'The body is the whole blob, with this digest.',
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
    description: 'The algorithm of the digest that will close the upload.',
    schema: digestAlgorithm,
  },
  ifNoneMatch: {
    name: 'If-None-Match',
    in: 'header',
    description: 'Answer 304 if the content still has one of these entity tags.',
    schema: text,
  },
  range: { name: 'Range', in: 'header', description: '`bytes=<first>-<last>`: one part of the blob.', schema: text },
  ifRange: {
    name: 'If-Range',
    in: 'header',
    description: '`Range` counts only if the content has this entity tag.',
    schema: text,
  },
  contentRange: {
    name: 'Content-Range',
    in: 'header',
    description: '`<first>-<last>`, without a unit: where the body stands in the blob.',
    schema: contentRange,
  },
} as const satisfies Readonly<Record<string, Parameter>>

export type ParameterName = keyof typeof parameters
