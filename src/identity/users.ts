import { readAllPages } from '../lib/paging.ts'
import { RegistryRefusal } from '../oci/errors.ts'
import type { Principal, Right } from '../ports/identity.ts'
import type { MetadataStore } from '../ports/metadata-store.ts'
import type { User, Users } from '../ports/users.ts'
import { isUserName, type UserName } from './names.ts'
import { hashPassword, isPassword } from './passwords.ts'
import { allRights, type RoleMap, rightsOf } from './rights.ts'

type ChangeNeeds = { readonly metadata: Pick<MetadataStore, 'transaction'> }

export interface NewUserRequest {
  readonly name: UserName
  readonly account: string
  readonly roles: readonly string[]
  /** Undefined: the user can have API keys only. */
  readonly password: string | undefined
}

/**
 * `usersMax`: how many users the account may have. A name belongs to one user across all accounts, so an account
 * without a limit could use up names.
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

/** The user of this name. With `account`: refuses if the user belongs to another account. */
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

/** Throws if the caller may not change this user. Called while the user's row is locked. */
export type UserCheck = (user: User) => void

/** Called while the row is locked, if after the change no user of the account would have the right `operate`. */
export type LastOperatorCheck = (user: User) => void

function refuseLastOperator(): void {
  throw new RegistryRefusal('last-operator', {
    reason: 'give another user of the account a role with this right first',
  })
}

/**
 * A new password ends the tokens of the user, and so does disabling the user. Scoped tokens work until they expire.
 * The API keys of a disabled user are refused until the user is enabled again. The last user of an account with the right `operate` keeps it, unless
 * `onLastOperator` allows the change.
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
    // Locked before any user: two operators who remove the right from each other must not both succeed, nor deadlock.
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

/** What the API and the command line show of a user. */
export function showUser({ name, account, roles, isDisabled, passwordHash }: User) {
  return { name, account, roles, disabled: isDisabled, hasPassword: passwordHash !== undefined }
}

/**
 * Refuses if the roles give a right that the caller does not have. A role that is not in the map counts as all rights,
 * because it may get rights when the configuration changes.
 */
export function checkMayManage(callerRights: ReadonlySet<Right>, roles: readonly string[], map: RoleMap): void {
  const rights = roles.every((role) => map.has(role)) ? rightsOf(roles, map) : new Set(allRights)
  if (!rights.isSubsetOf(callerRights)) {
    throw new RegistryRefusal('denied', { rights: [...rights.difference(callerRights)] })
  }
}

/** Refuses a caller with an API key that expires, because a password does not expire. */
export function checkMaySetPassword({ keyExpiresAt }: Pick<Principal, 'keyExpiresAt'>): void {
  if (keyExpiresAt === undefined) return
  throw new RegistryRefusal('denied', { field: 'password', reason: 'cannot be set with an API key that expires' })
}

/**
 * The user with this name and password. It takes the same time whether the name or the password is wrong. An invalid
 * name is not looked up, because PostgreSQL refuses text with NUL.
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
