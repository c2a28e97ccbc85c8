import { type Static, Type } from 'typebox'
import { dockerManifest, ociIndex, ociManifest } from '../../oci/media-types.ts'
import { errorTable } from '../error-body.ts'
import { auditSchemas } from './audit-schemas.ts'
import { deletionSchemas } from './deletion-schemas.ts'
import { eventSchemas } from './event-schemas.ts'
import { anyDigest } from './formats.ts'
import { identitySchemas } from './identity-schemas.ts'
import { imageDetailSchemas } from './image-detail-schemas.ts'
import { imageSchemas } from './image-schemas.ts'
import { policySchemas } from './policy-schemas.ts'
import { usageSchemas } from './usage-schemas.ts'

// spec.md does not say which fields are mandatory. Here, the fields that every answer has are mandatory.
const ErrorMessage = Type.Object({ msg: Type.String() }, { description: 'An error message for people.' })

const StatsResponse = Type.Object({
  imageCount: Type.Integer({ minimum: 0, description: 'Repositories of the account with at least one manifest.' }),
  serverUrl: Type.String({ description: 'The address for `docker login`.' }),
})

const CatalogResponse = Type.Object({ repositories: Type.Array(Type.String()) })

const TagsListResponse = Type.Object({
  name: Type.String({ description: 'Name of the image.' }),
  tags: Type.Array(Type.String(), { description: 'In byte order; empty, never null.' }),
})

const ManifestResponse = Type.Object(
  {
    schemaVersion: Type.Integer(),
    mediaType: Type.Optional(Type.String()),
    manifests: Type.Optional(Type.Array(Type.Object({}), { description: 'The entries of an index.' })),
  },
  { description: 'The pushed bytes, unchanged. They also contain all other fields of the manifest.' },
)

const ReferrerManifest = Type.Object({
  mediaType: Type.String(),
  size: Type.Integer({ minimum: 0 }),
  digest: Type.String(),
  artifactType: Type.Optional(Type.String({ description: 'Absent for an index without an artifact type.' })),
  annotations: Type.Optional(Type.Object({}, { additionalProperties: Type.String() })),
})

const ReferrerResponse = Type.Object(
  {
    schemaVersion: Type.Integer(),
    mediaType: Type.Literal('application/vnd.oci.image.index.v1+json'),
    manifests: Type.Array(Type.Ref('#/components/schemas/ReferrerManifest')),
  },
  { description: 'An OCI image index.' },
)

/** The codes of the distribution-spec that the server uses, and the two for 5xx. */
const errorCodes = [...new Set([...Object.values(errorTable).map((row) => row.code), 'UNAVAILABLE', 'UNKNOWN'])].sort()

const OciError = Type.Object(
  {
    errors: Type.Array(
      Type.Object({
        code: Type.Enum(errorCodes),
        message: Type.String(),
        detail: Type.Object({}, { description: 'The digest, the offset or the reason of the error. Can be empty.' }),
      }),
      { minItems: 1 },
    ),
    msg: Type.String({ description: 'The same message, for readers of ErrorMessage.' }),
  },
  { description: 'The error body of the OCI distribution-spec. It is also an ErrorMessage.' },
)

const HealthResponse = Type.Object({
  status: Type.Literal('ok'),
  version: Type.String({ description: 'The version of Berth.' }),
})

const ServerDescription = Type.Object({
  name: Type.String(),
  version: Type.String({ description: 'The version of the program.' }),
  registry: Type.String({ description: 'The prefix of image names, and the argument of `docker login`.' }),
  commands: Type.Optional(
    Type.Object(
      { login: Type.String(), tag: Type.String(), push: Type.String(), pull: Type.String() },
      { description: 'Absent if `registry.root_mount` is false, because Docker cannot use the address then.' },
    ),
  ),
  openapi: Type.String({ description: 'Path of this document.' }),
  documentation: Type.Optional(Type.String({ description: 'The setting `server.docs_url`.' })),
})

const ReadinessResponse = Type.Object({
  status: Type.Literal('ready'),
  disk: Type.Enum(['ok', 'low'], {
    description:
      '`low`: a local disk has less free space than `storage.min_free`. Pushes are answered with 503. Everything else works.',
  }),
})

const Descriptor = Type.Object(
  {
    mediaType: Type.String({ minLength: 1 }),
    digest: anyDigest,
    size: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
    urls: Type.Optional(Type.Array(Type.String())),
  },
  { description: 'A reference from a manifest to content.' },
)
const descriptorRef = Type.Ref('#/components/schemas/Descriptor')

/** The members that an image manifest and an index have in common. */
const ofBoth = {
  schemaVersion: Type.Literal(2),
  subject: Type.Optional(descriptorRef),
  artifactType: Type.Optional(Type.String()),
  annotations: Type.Optional(Type.Object({}, { additionalProperties: Type.String() })),
}

const ImageManifestUpload = Type.Object(
  {
    ...ofBoth,
    mediaType: Type.Optional(
      Type.Enum([dockerManifest, ociManifest], { description: 'If present, it must equal the Content-Type.' }),
    ),
    config: descriptorRef,
    layers: Type.Array(descriptorRef),
  },
  { description: 'An image manifest. Its config and its layers must have been pushed to the image before.' },
)

const ImageIndexUpload = Type.Object(
  { ...ofBoth, mediaType: Type.Optional(Type.Literal(ociIndex)), manifests: Type.Array(descriptorRef) },
  { description: 'An image index. Its manifests must have been pushed to the image before.' },
)

const OpenApiDocument = Type.Object({ openapi: Type.String(), info: Type.Object({}), paths: Type.Object({}) })

export const schemas = {
  ErrorMessage,
  StatsResponse,
  CatalogResponse,
  TagsListResponse,
  ManifestResponse,
  ReferrerResponse,
  ReferrerManifest,
  OciError,
  ...imageSchemas,
  ...policySchemas,
  ...usageSchemas,
  ...auditSchemas,
  ...deletionSchemas,
  ...imageDetailSchemas,
  ...eventSchemas,
  ...identitySchemas,
  ServerDescription,
  HealthResponse,
  ReadinessResponse,
  Descriptor,
  ImageManifestUpload,
  ImageIndexUpload,
  OpenApiDocument,
} as const

export type SchemaName = keyof typeof schemas

/** The type of a body that the schema accepts. */
export type BodyOf<Name extends SchemaName> = Static<(typeof schemas)[Name]>

export function schemaRef(name: SchemaName): { readonly $ref: string } {
  return { $ref: `#/components/schemas/${name}` }
}
