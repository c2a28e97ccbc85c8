import { Type } from 'typebox'
import { dateTime, digest, tag, tags } from './formats.ts'

// The bodies of the routes that delete and undelete images.

const name = Type.String({ description: 'Name of the image.' })
const artifactType = Type.Union([Type.String(), Type.Null()])
const sizeBytes = Type.Integer({ minimum: 0, description: 'Size of the manifest itself.' })
const timeOrNull = (description: string) => Type.Union([dateTime, Type.Null()], { description })
const tagTargets = (description: string) => Type.Array(Type.Ref('#/components/schemas/DeletionTag'), { description })
const hasMore = Type.Boolean({ description: 'There is more than one request does: repeat it.' })

const DeletionTag = Type.Object({ tag, digest })

const DeletionManifest = Type.Object({
  digest,
  mediaType: Type.String(),
  artifactType,
  sizeBytes,
  role: Type.Enum(['image', 'child', 'referrer', 'companion tag']),
  tags,
})

const DeletionRemaining = Type.Object({
  tags: tagTargets('Other tags of the same manifests.'),
  immutable: tagTargets('Immutable tags. They stay, with their manifests, unless the caller has the right `operate`.'),
  untagged: Type.Array(digest, { description: 'Manifests to which nothing leads afterwards.' }),
  listed: Type.Array(digest, { description: 'Manifests that stay because an index lists them.' }),
  children: Type.Array(
    Type.Object({
      digest,
      parent: digest,
      untagged: Type.Boolean({ description: 'Whether nothing leads to it afterwards.' }),
    }),
    { description: 'Manifests that a deleted index lists.' },
  ),
  referrers: Type.Array(Type.Object({ digest, artifactType, subject: digest }), {
    description: 'Manifests whose subject is deleted.',
  }),
})

const DeletionBytes = Type.Object({
  freedNow: Type.Integer({ minimum: 0, description: 'Always 0, because deleted manifests keep their blobs.' }),
  freedLater: Type.Integer({
    minimum: 0,
    description: 'Bytes of the blobs that no other manifest of the account uses.',
  }),
  freedAt: timeOrNull('When these bytes are freed, at the earliest.'),
  isLowerBound: Type.Boolean({ description: 'Not all of it could be looked at.' }),
})

const DeletionResponse = Type.Object({
  name,
  dryRun: Type.Boolean({ description: 'Nothing was changed.' }),
  tags: tagTargets('The tags that are deleted, and where they pointed.'),
  manifests: Type.Array(Type.Ref('#/components/schemas/DeletionManifest'), {
    description: 'The manifests that are deleted.',
  }),
  remaining: Type.Ref('#/components/schemas/DeletionRemaining'),
  bytes: Type.Ref('#/components/schemas/DeletionBytes'),
  undeletableUntil: timeOrNull('Until when the manifests can be undeleted. Null: not at all.'),
  hasMore,
  last: Type.Union([tag, Type.Null()], { description: 'The parameter `last` of the repetition, if it needs one.' }),
})

const DeletedManifest = Type.Object({
  digest,
  mediaType: Type.String(),
  artifactType,
  sizeBytes,
  tags,
  deletedAt: dateTime,
  deletedBy: Type.String({ description: 'The subject of the caller, for example the name of the user.' }),
  cause: Type.Enum(['manifest deleted', 'tags deleted', 'repository deleted', 'untagged', 'policy']),
  undeletableUntil: dateTime,
})

const DeletedManifestsResponse = Type.Object({
  name,
  manifests: Type.Array(Type.Ref('#/components/schemas/DeletedManifest')),
})

const undeleted = {
  name,
  manifests: Type.Array(digest, { description: 'The manifests that came back.' }),
  tags,
  keptTags: Type.Array(tag, { description: 'Tags that exist again, and stay where they point.' }),
}

const UndeleteResponse = Type.Object(undeleted)

const UndeleteRepositoryResponse = Type.Object({
  ...undeleted,
  refused: Type.Array(digest, { description: 'Manifests that cannot come back, because content is missing.' }),
  hasMore,
})

export const deletionSchemas = {
  DeletionTag,
  DeletionManifest,
  DeletionRemaining,
  DeletionBytes,
  DeletionResponse,
  DeletedManifest,
  DeletedManifestsResponse,
  UndeleteResponse,
  UndeleteRepositoryResponse,
} as const
