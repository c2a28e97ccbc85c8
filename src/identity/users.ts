import { RegistryRefusal } from '../oci/errors.ts'
import type { Right } from '../ports/identity.ts'
import type { MetadataStore } from '../ports/metadata-store.ts'
import type { User, Users } from '../ports/users.ts'
import { hashPassword, isPassword, passwordLengthMax, passwordLengthMin } from './passwords.ts'
import { allRights, type RoleMap, rightsOf } from './rights.ts'

type AddNeeds = { readonly users: Pick<Users, 'add'> }

export interface NewUserRequest {
  readonly name: UserName
  readonly account: string
  readonly roles: readonly string[]
  /** Without one, the user has API keys alone. */
  readonly password: string | undefined
}

/** What a user is called. Made only by its parser. */
export type UserName = string & { readonly __brand: 'UserName' }

const namePattern = /^[A-Za-z0-9][A-Za-z0-9._@+-]{0,127}$/

/** As the user name of Basic credentials, these say that the password is an API key or a token. */
export const reservedNames: ReadonlySet<string> = new Set(['apikey', 'bearer'])

export function isUserName(text: string): text is UserName {
  return namePattern.test(text) && !reservedNames.has(text)
}

export function parseUserName(text: string): UserName {
  if (isUserName(text)) return text
  throw new RegistryRefusal('identity-invalid', {
    field: 'name',
    reason: reservedNames.has(text)
      ? `must not be ${text}, which is reserved for signing in with keys and tokens`
      : 'must be 1 to 128 letters, digits and . _ @ + -, beginning with a letter or a digit',
  })
}

const rolesMax = 32
const rolePattern = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$/

export function parseRoles(given: readonly string[]): readonly string[] {
  if (given.length > rolesMax) {
    throw new RegistryRefusal('identity-invalid', { field: 'roles', reason: `must be at most ${rolesMax}` })
  }
  const bad = given.findIndex((role) => !rolePattern.test(role))
  if (bad === -1) return [...new Set(given)]
  throw new RegistryRefusal('identity-invalid', {
    field: `roles[${bad}]`,
    reason: 'must be 1 to 64 letters, digits and . _ : -, beginning with a letter or a digit',
  })
}

export function parsePassword(given: string): string {
  if (given.length >= passwordLengthMin && given.length <= passwordLengthMax) return given
  throw new RegistryRefusal('identity-invalid', {
    field: 'password',
    reason: `must be ${passwordLengthMin} to ${passwordLengthMax} characters`,
  })
}

export async function addUser({ users }: AddNeeds, request: NewUserRequest): Promise<User> {
  const { name, account, roles, password } = request
  const passwordHash = password === undefined ? undefined : await hashPassword(password)
  const user = await users.add({ name, account, roles, passwordHash, isDisabled: false })
  if (user === undefined) throw new RegistryRefusal('user-exists', { user: name })
  return user
}

/** The user of this name; with an account, only if he belongs to it. */
export async function getUser(
  { users }: { readonly users: Pick<Users, 'find'> },
  name: string,
  account?: string,
): Promise<User> {
  const user = await users.find(name)
  if (user === undefined || (account !== undefined && user.account !== account)) {
    throw userUnknown(name)
  }
  return user
}

export interface UserChangeRequest {
  readonly roles?: readonly string[]
  readonly isDisabled?: boolean
  readonly password?: string
}

/** Refuses a user whom the caller may not change; asked under the lock, so that what it saw still holds. */
export type UserCheck = (user: User) => void

/** A new password, or being disabled, ends the tokens that the user has; his API keys rest while he is disabled. */
export async function changeUser(
  { metadata }: { readonly metadata: Pick<MetadataStore, 'transaction'> },
  name: string,
  { password, ...rest }: UserChangeRequest,
  check: UserCheck = () => undefined,
): Promise<User> {
  const change = password === undefined ? rest : { ...rest, passwordHash: await hashPassword(password) }
  return metadata.transaction(async ({ users }) => {
    const user = await users.findLocked(name)
    if (user !== undefined) check(user)
    const changed = user && (await users.change(user.id, change))
    if (changed === undefined) throw userUnknown(name)
    return changed
  })
}

export function userUnknown(name: string): RegistryRefusal {
  return new RegistryRefusal('user-unknown', { user: name.slice(0, 128) })
}

/** What may be shown of a user to those who manage users. */
export function showUser({ name, account, roles, isDisabled, passwordHash }: User) {
  return { name, account, roles, disabled: isDisabled, hasPassword: passwordHash !== undefined }
}

/**
 * Nobody gives, or gets hold of, what he has not got himself. A role that the map does not know counts as all rights: it
 * may mean something to others, or tomorrow.
 */
export function checkMayManage(own: ReadonlySet<Right>, roles: readonly string[], map: RoleMap): void {
  const theirs = roles.every((role) => map.has(role)) ? rightsOf(roles, map) : new Set(allRights)
  if (!theirs.isSubsetOf(own)) throw new RegistryRefusal('denied', { rights: [...theirs.difference(own)] })
}

/**
 * The user with this name and password, at the same cost whether the name or the password is wrong. A name that no user
 * can have is not looked up: PostgreSQL refuses text with NUL.
 */
export async function findByPassword(
  { users }: { readonly users: Pick<Users, 'find'> },
  name: string,
  password: string,
): Promise<User | undefined> {
  const user = isUserName(name) ? await users.find(name) : undefined
  const matches = await isPassword(password, user?.passwordHash)
  return matches && user !== undefined && !user.isDisabled ? user : undefined
}
