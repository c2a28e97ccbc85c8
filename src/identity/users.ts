import { RegistryRefusal } from '../oci/errors.ts'
import type { Right } from '../ports/identity.ts'
import type { User, Users } from '../ports/users.ts'
import { hashPassword, isPassword, passwordLengthMax, passwordLengthMin } from './passwords.ts'
import { type RoleMap, rightsOf } from './rights.ts'

type AddNeeds = { readonly users: Pick<Users, 'add'> }
type ChangeNeeds = { readonly users: Pick<Users, 'find' | 'change'> }

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

export function parseUserName(text: string): UserName {
  if (namePattern.test(text)) return text as UserName
  throw new RegistryRefusal('identity-invalid', { reason: 'a name has 1 to 128 letters, digits and . _ @ + -' })
}

const rolesMax = 32
const rolePattern = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$/

export function parseRoles(given: readonly string[]): readonly string[] {
  if (given.length <= rolesMax && given.every((role) => rolePattern.test(role))) return [...new Set(given)]
  throw new RegistryRefusal('identity-invalid', {
    reason: `roles are at most ${rolesMax}, of letters, digits and . _ : -`,
  })
}

export function parsePassword(given: string): string {
  if (given.length >= passwordLengthMin && given.length <= passwordLengthMax) return given
  throw new RegistryRefusal('identity-invalid', {
    reason: `a password has ${passwordLengthMin} to ${passwordLengthMax} characters`,
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
    throw new RegistryRefusal('user-unknown', { user: name.slice(0, 128) })
  }
  return user
}

export interface UserChangeRequest {
  readonly roles?: readonly string[]
  readonly isDisabled?: boolean
  readonly password?: string
}

/** A new password, or being disabled, ends the tokens that the user has; his API keys rest while he is disabled. */
export async function changeUser({ users }: ChangeNeeds, user: User, request: UserChangeRequest): Promise<User> {
  const { password, ...rest } = request
  const change = password === undefined ? rest : { ...rest, passwordHash: await hashPassword(password) }
  const changed = await users.change(user.id, change)
  if (changed === undefined) throw new RegistryRefusal('user-unknown', { user: user.name })
  return changed
}

/** What may be shown of a user to those who manage users. */
export function showUser({ name, account, roles, isDisabled, passwordHash }: User) {
  return { name, account, roles, disabled: isDisabled, hasPassword: passwordHash !== undefined }
}

/** Nobody gives, or gets hold of, what he has not got himself. */
export function checkMayManage(own: ReadonlySet<Right>, roles: readonly string[], map: RoleMap): void {
  const theirs = rightsOf(roles, map)
  if (!theirs.isSubsetOf(own)) throw new RegistryRefusal('denied', { rights: [...theirs.difference(own)] })
}

/** The user with this name and password, at the same cost whether the name or the password is wrong. */
export async function findByPassword(
  { users }: { readonly users: Pick<Users, 'find'> },
  name: string,
  password: string,
): Promise<User | undefined> {
  const user = await users.find(name)
  const matches = await isPassword(password, user?.passwordHash)
  return matches && user !== undefined && !user.isDisabled ? user : undefined
}
