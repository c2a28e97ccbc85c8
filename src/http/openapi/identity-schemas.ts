import { type TSchema, Type } from 'typebox'
import { rolesMax } from '../../identity/names.ts'
import { passwordLengthMax, passwordLengthMin } from '../../identity/passwords.ts'
import { allRights } from '../../identity/rights.ts'
import { keyName, roleName, userName } from './formats.ts'

// The bodies of the routes for tokens, users and API keys.

const right = Type.Enum([...allRights])

function orNull<Schema extends TSchema>(schema: Schema, description: string) {
  return Type.Union([schema, Type.Null()], { description })
}

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

export const identitySchemas = {
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
} as const
