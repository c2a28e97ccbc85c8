import { Type } from 'typebox'
import { dateTime, digest } from './formats.ts'

// The bodies of the routes that manage images.

const name = Type.String({ description: 'Name of the image.' })
const tag = Type.String()

const TagResponse = Type.Object({
  name,
  tag,
  digest,
  at: Type.Union([dateTime, Type.Null()], { description: 'The time of the request parameter `at`. Null: now.' }),
})

const TagMove = Type.Object({
  from: Type.Union([digest, Type.Null()], { description: 'Null: the tag did not exist before.' }),
  to: Type.Union([digest, Type.Null()], { description: 'Null: the tag did not exist afterwards.' }),
  movedAt: dateTime,
  movedBy: Type.String({ description: 'The subject of the caller, for example the name of the user.' }),
  cause: Type.Enum(['push', 'restore', 'undelete', 'tag deleted', 'manifest deleted', 'policy']),
})

const TagHistoryResponse = Type.Object({
  name,
  tag,
  moves: Type.Array(Type.Ref('#/components/schemas/TagMove'), { description: 'The newest first.' }),
})

const RestoreTagRequest = Type.Object(
  {
    digest: Type.Optional(Type.String({ description: 'The manifest to which the tag shall point.' })),
    at: Type.Optional(Type.String({ format: 'date-time', description: 'The manifest that the tag had at this time.' })),
  },
  { additionalProperties: false, description: 'Empty: undo the last move.' },
)

const RestoredTagResponse = Type.Object({ name, tag, digest })

const UntaggedManifest = Type.Object({
  digest,
  mediaType: Type.String(),
  artifactType: Type.Union([Type.String(), Type.Null()]),
  sizeBytes: Type.Integer({ minimum: 0, description: 'Size of the manifest itself.' }),
  since: Type.String({ format: 'date-time', description: 'Since when nothing leads to it.' }),
  wasTagged: Type.Boolean({ description: 'Whether a tag pointed to it before.' }),
  removedAt: Type.Union([dateTime, Type.Null()], { description: 'When the collector may remove it. Null: never.' }),
})

const UntaggedManifestsResponse = Type.Object({
  name,
  manifests: Type.Array(Type.Ref('#/components/schemas/UntaggedManifest')),
})

export const imageSchemas = {
  TagResponse,
  TagMove,
  TagHistoryResponse,
  RestoreTagRequest,
  RestoredTagResponse,
  UntaggedManifest,
  UntaggedManifestsResponse,
} as const
