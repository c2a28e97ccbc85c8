import { type Static, type TSchema, Type } from 'typebox'
import { rolesMax } from '../../identity/names.ts'
import { passwordLengthMax, passwordLengthMin } from '../../identity/passwords.ts'
import { allRights } from '../../identity/rights.ts'
import { dockerManifest, ociIndex, ociManifest } from '../../oci/media-types.ts'
import { errorTable } from '../error-body.ts'
import { anyDigest, keyName, roleName, userName } from './formats.ts'

export type Schema = TSchema

const right = Type.Enum([...allRights])

function orNull<Schema extends TSchema>(schema: Schema, description: string) {
  return Type.Union([schema, Type.Null()], { description })
}

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

const TokenRequest = Type.Object({ username: Type.String(), password: Type.String() })

const TokenResponse = Type.Object({
  access_token: Type.String({ description: 'A JWT.' }),
  scope: Type.String({ description: 'The account.' }),
  token_type: Type.Literal('Bearer'),
  expires_in: Type.Integer({ description: 'Seconds.' }),
})

const MeResponse = Type.Object({
  roles: Type.Array(Type.String()),
  user: Type.String(),
  account: Type.String(),
  scope: Type.String({ description: 'The account, under the name that tokens use for it.' }),
  userRoles: Type.Optional(
    Type.Array(Type.String(), {
      description:
        'For a limited key: all roles of its user. `roles` then contains only the roles whose rights the key has in full.',
    }),
  ),
  rights: Type.Array(right),
  expiresAt: Type.Optional(Type.String({ format: 'date-time', description: 'When the credential expires.' })),
  repositories: Type.Optional(
    Type.Array(Type.String(), { description: 'For a key that is limited to some repositories: their names.' }),
  ),
})

const UserResponse = Type.Object({
  name: Type.String(),
  account: Type.String(),
  roles: Type.Array(Type.String()),
  disabled: Type.Boolean(),
  hasPassword: Type.Boolean({ description: 'A user without a password can only use API keys.' }),
})

const UsersResponse = Type.Object({ users: Type.Array(Type.Ref('#/components/schemas/UserResponse')) })

const roles = Type.Array(roleName, {
  maxItems: rolesMax,
  description: 'The setting `identity.roles` maps roles to rights.',
})
const password = Type.String({ minLength: passwordLengthMin, maxLength: passwordLengthMax })

/** A member that the server does not know is refused: it may be a misspelt limit. */
const noOthers = { additionalProperties: false }

const NewUserRequest = Type.Object(
  { name: userName, roles: Type.Optional(roles), password: Type.Optional(password) },
  noOthers,
)

const UserChangeRequest = Type.Object(
  { roles: Type.Optional(roles), disabled: Type.Optional(Type.Boolean()), password: Type.Optional(password) },
  { ...noOthers, description: 'Absent members are not changed.' },
)

const repositoriesMeaning =
  'Names of repositories, in which `*` stands for any text. Null means all repositories of the account.'

const limits = {
  expiresAt: orNull(Type.String({ format: 'date-time' }), 'Null means never.'),
  rights: orNull(Type.Array(right), 'The rights of its user that the key has. Null means all of them.'),
  repositories: orNull(Type.Array(Type.String()), repositoriesMeaning),
}

const ApiKeyResponse = Type.Object({
  name: Type.String(),
  createdAt: Type.String({ format: 'date-time' }),
  lastUsedAt: orNull(Type.String({ format: 'date-time' }), 'One or two minutes late. Null means never.'),
  ...limits,
})

const ApiKeysResponse = Type.Object({ keys: Type.Array(Type.Ref('#/components/schemas/ApiKeyResponse')) })

const NewApiKeyRequest = Type.Object(
  {
    name: keyName,
    expiresAt: Type.Optional(limits.expiresAt),
    rights: Type.Optional(limits.rights),
    repositories: Type.Optional(orNull(Type.Array(Type.String(), { maxItems: 64 }), repositoriesMeaning)),
  },
  noOthers,
)

const NewApiKeyResponse = Type.Object({
  name: Type.String(),
  key: Type.String({ description: 'The key itself. No other answer shows it.' }),
  ...limits,
})

const KeySet = Type.Object({ keys: Type.Array(Type.Object({})) }, { description: 'A JSON Web Key Set.' })

const ScopedTokenForm = Type.Object({
  grant_type: Type.Literal('password'),
  username: Type.Optional(
    Type.String({ description: '`apikey`, `bearer` or the name of a user. Without it, the other credentials count.' }),
  ),
  password: Type.Optional(Type.String({ description: 'The API key, the token or the password.' })),
  scope: Type.Optional(Type.String()),
  service: Type.Optional(Type.String()),
})

const ScopedTokenResponse = Type.Object({
  token: Type.String(),
  access_token: Type.String({ description: 'The same token.' }),
  token_type: Type.Literal('Bearer'),
  expires_in: Type.Integer({ minimum: 60, description: 'Seconds.' }),
  issued_at: Type.String({ format: 'date-time' }),
  scope: Type.String({ description: 'The granted part of the requested scope.' }),
})

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
  TokenRequest,
  TokenResponse,
  MeResponse,
  UserResponse,
  UsersResponse,
  NewUserRequest,
  UserChangeRequest,
  ApiKeyResponse,
  ApiKeysResponse,
  NewApiKeyRequest,
  NewApiKeyResponse,
  KeySet,
  ScopedTokenForm,
  ScopedTokenResponse,
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

/** Schemas of parameters and headers. */
export const text = Type.String()
export const wholeNumber = Type.Integer({ minimum: 0 })
export const reference = Type.String({ format: 'uri-reference' })
export const uuid = Type.String({ format: 'uuid' })
export const manyTexts = Type.Array(Type.String())
