import { readAllPages } from '../lib/paging.ts'
import { RegistryRefusal } from '../oci/errors.ts'
import type { Principal, Right } from '../ports/identity.ts'
import type { MetadataStore } from '../ports/metadata-store.ts'
import type { User, Users } from '../ports/users.ts'
import { hashPassword, isPassword, passwordLengthMax, passwordLengthMin } from './passwords.ts'
import { allRights, type RoleMap, rightsOf } from './rights.ts'

type ChangeNeeds = { readonly metadata: Pick<MetadataStore, 'transaction'> }

export interface NewUserRequest {
  readonly name: UserName
  readonly account: string
  readonly roles: readonly string[]
  /** Without one, the user has API keys alone. */
  readonly password: string | undefined
}

/** What a user is called. Made only by its parser. */
export type UserName = string & { readonly __brand: 'UserName' }

export const userNamePattern = /^[A-Za-z0-9][A-Za-z0-9._@+-]{0,127}$/

/**
 * As the user name of Basic credentials, these say that the password is an API key or a token. A new user cannot have
 * such a name in any case of its letters, because people would confuse the two. An older user of a name such as `ApiKey`
 * can still log in.
 */
export const reservedNames: ReadonlySet<string> = new Set(['apikey', 'bearer'])

export function isUserName(text: string): text is UserName {
  return userNamePattern.test(text) && !reservedNames.has(text)
}

export function parseUserName(text: string): UserName {
  const isReserved = reservedNames.has(text.toLowerCase())
  if (!isReserved && isUserName(text)) return text
  throw new RegistryRefusal('identity-invalid', {
    field: 'name',
    reason: isReserved
      ? `must not be ${text}, which is reserved for signing in with keys and tokens`
      : 'must be 1 to 128 letters, digits and . _ @ + -, beginning with a letter or a digit',
  })
}

export const rolesMax = 32
export const rolePattern = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$/

export function parseRoles(given: readonly string[]): readonly string[] {
  if (given.length > rolesMax) {
    throw new RegistryRefusal('identity-invalid', { field: 'roles', reason: `must have at most ${rolesMax} entries` })
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

/**
 * `usersMax`: how many users the account may have. Names are shared by all accounts, so an account without a limit could
 * take them from the others.
 */
export async function addUser(
  { metadata }: ChangeNeeds,
  request: NewUserRequest,
  usersMax = Number.POSITIVE_INFINITY,
): Promise<User> {
  const { name, account, roles, password } = request
  const passwordHash = password === undefined ? undefined : await hashPassword(password)
  return metadata.transaction(async ({ users }) => {
    if (usersMax !== Number.POSITIVE_INFINITY) {
      await users.lockAccount(account)
      if ((await users.count(account)) >= usersMax) throw new RegistryRefusal('too-many-users', { max: usersMax })
    }
    const user = await users.add({ name, account, roles, passwordHash, isDisabled: false })
    if (user === undefined) throw new RegistryRefusal('user-exists', { user: name })
    return user
  })
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

/** Called under the lock when the change leaves no user in the account who can operate it. */
export type LastOperatorCheck = (user: User) => void

function refuseLastOperator(): void {
  throw new RegistryRefusal('last-operator', {
    reason: 'give another user of the account a role with this right first',
  })
}

/**
 * A new password, or being disabled, ends the tokens that the user has. The API keys of a disabled user are refused until
 * the user is enabled again. The last user of an account who can operate it keeps that right, unless `onLastOperator`
 * allows the change.
 */
export async function changeUser(
  { metadata, roles }: ChangeNeeds & { readonly roles: RoleMap },
  name: string,
  { password, ...rest }: UserChangeRequest,
  check: UserCheck = () => undefined,
  onLastOperator: LastOperatorCheck = refuseLastOperator,
): Promise<User> {
  const change = password === undefined ? rest : { ...rest, passwordHash: await hashPassword(password) }
  return metadata.transaction(async ({ users }) => {
    const account = (await users.find(name))?.account
    // Before any user is locked: two operators who take the right from each other must not both succeed, nor block.
    if (account !== undefined && (rest.roles ?? rest.isDisabled) !== undefined) await users.lockAccount(account)
    const user = await users.findLocked(name)
    if (user === undefined) throw userUnknown(name)
    check(user)
    const losesRight = canOperate(user, roles) && !canOperate({ ...user, ...rest }, roles)
    if (losesRight && (await isLastOperator(users, user, roles))) onLastOperator(user)
    const changed = await users.change(user.id, change)
    if (changed === undefined) throw userUnknown(name)
    return changed
  })
}

function canOperate({ roles, isDisabled }: Pick<User, 'roles' | 'isDisabled'>, map: RoleMap): boolean {
  return !isDisabled && rightsOf(roles, map).has('operate')
}

async function isLastOperator(users: Pick<Users, 'list'>, { id, account }: User, map: RoleMap): Promise<boolean> {
  const all = await readAllPages((after, limit) => users.list(account, after, limit))
  return !all.some((other) => other.id !== id && canOperate(other, map))
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

/** A password does not expire. Set by an API key that does, it would give access for longer than the key. */
export function checkMaySetPassword({ keyExpiresAt }: Pick<Principal, 'keyExpiresAt'>): void {
  if (keyExpiresAt === undefined) return
  throw new RegistryRefusal('denied', { field: 'password', reason: 'cannot be set with an API key that expires' })
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
