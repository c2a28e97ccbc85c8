import { Type } from 'typebox'
import { dateTime } from './formats.ts'

// The bodies of the routes that tell what repositories and accounts hold.

const count = (description: string) => Type.Integer({ minimum: 0, description })
const timeOrNull = (description: string) => Type.Union([dateTime, Type.Null()], { description })

const RepositoryResponse = Type.Object({
  name: Type.String({ description: 'Name of the image.' }),
  tags: count('Number of tags.'),
  manifests: count('Number of manifests.'),
  bytes: count('Size of all manifests, and of all blobs that the repository links.'),
  ownedBytes: count('The part of `bytes` that no other repository of the account shares.'),
  sharedBytes: count('The rest of `bytes`.'),
  pushedAt: timeOrNull('The last push of a manifest. Null: none is known.'),
  pulledAt: timeOrNull('The last pull of a manifest, recorded once in a period. Null: none is known.'),
})

const RepositoriesResponse = Type.Object({
  repositories: Type.Array(Type.Ref('#/components/schemas/RepositoryResponse')),
})

const isExact = Type.Boolean({ description: 'False: there is more than this request has looked at.' })

const StorageResponse = Type.Object({
  images: count('Repositories with at least one manifest.'),
  manifests: count('Number of manifests.'),
  tags: count('Number of tags.'),
  logicalBytes: count('The sum of `bytes` over all repositories.'),
  storedBytes: count('The manifests, and each blob once, also if it waits for its collection.'),
  waitingForCollection: Type.Object(
    { bytes: count('Size of these blobs.'), isExact },
    { description: 'Blobs that no manifest needs. The collector removes them when their leases end.' },
  ),
  unfinishedUploads: Type.Object({
    count: count('Number of unfinished uploads.'),
    bytes: count('The bytes that they have received.'),
    isExact,
  }),
  isCounting: Type.Boolean({
    description: 'True after an upgrade while existing content is counted. The numbers are too small until then.',
  }),
})

const UploadsResponse = Type.Object({
  uploads: Type.Array(
    Type.Object({
      id: Type.String(),
      repository: Type.String(),
      subject: Type.String({ description: 'The subject of the caller who started it.' }),
      sizeBytes: count('The bytes that are stored.'),
      startedAt: dateTime,
      touchedAt: Type.String({ format: 'date-time', description: 'When a request last wrote to it.' }),
      isWritten: Type.Boolean({ description: 'Whether a request writes to it now.' }),
    }),
  ),
})

const limit = (description: string) => Type.Union([Type.Integer({ minimum: 0 }), Type.Null()], { description })

const QuotaResponse = Type.Object({
  limits: Type.Object(
    {
      bytes: limit('Stored bytes.'),
      repositories: limit('Repositories with a manifest.'),
      tags: limit('Tags in all repositories.'),
    },
    { description: 'Null: no limit.' },
  ),
  used: Type.Object({ bytes: count('Stored bytes.'), repositories: count('Repositories.'), tags: count('Tags.') }),
  warnings: Type.Array(Type.Enum(['bytes', 'repositories', 'tags']), {
    description: 'The limits of which at least 80 % is used.',
  }),
})

export const usageSchemas = {
  QuotaResponse,
  RepositoryResponse,
  RepositoriesResponse,
  StorageResponse,
  UploadsResponse,
} as const
