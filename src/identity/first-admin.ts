import type { ApiKeys } from '../ports/api-keys.ts'
import type { RowId } from '../ports/row-id.ts'
import type { User, Users } from '../ports/users.ts'
import { generateApiKey, hashApiKey, presetKeyName } from './api-keys.ts'
import { hashPassword, isPassword } from './passwords.ts'

export interface AdminPreset {
  readonly name: string
  readonly apiKey: string | undefined
  readonly password: string | undefined
}

type Needs = { readonly users: Users; readonly apiKeys: ApiKeys }

const firstKeyName = 'first'
const unlimited = { expiresAt: undefined, rights: undefined, repositories: undefined }

export interface Admin {
  readonly userId: RowId
  readonly account: string
  readonly hasPassword: boolean
  readonly hasKey: boolean
}

/** The administrator with the preset credentials. A preset key is good as long as the configuration says so. */
export async function ensureAdmin(needs: Needs, preset: AdminPreset): Promise<Admin> {
  const admin = await ensureUser(needs, preset)
  await ensurePresetKey(needs, admin, preset.apiKey)
  const { id: userId, account, passwordHash } = admin
  const hasKey = (await needs.apiKeys.list(userId)).length > 0
  return { userId, account, hasPassword: passwordHash !== undefined, hasKey }
}

/**
 * Makes an API key for an administrator who has neither key nor password. The key is to be shown once and never again, so
 * this is called only when nothing can fail any more between here and the operator. Undefined where none is needed.
 */
export async function createFirstKey(
  { apiKeys }: Pick<Needs, 'apiKeys'>,
  { userId, hasPassword, hasKey }: Admin,
): Promise<string | undefined> {
  if (hasPassword || hasKey) return undefined
  const key = generateApiKey()
  const isOurs = await apiKeys.add({ userId, name: firstKeyName, secretHash: hashApiKey(key), ...unlimited })
  // Otherwise another server was first, and shows its own.
  return isOurs ? key : undefined
}

async function ensureUser(
  { users }: Pick<Needs, 'users'>,
  { name, password }: Omit<AdminPreset, 'apiKey'>,
): Promise<User> {
  const known = await users.find(name)
  if (known !== undefined) {
    if (password === undefined || (await isPassword(password, known.passwordHash))) return known
    return (await users.change(known.id, { passwordHash: await hashPassword(password) })) ?? known
  }
  const added = await users.add({
    name,
    passwordHash: password === undefined ? undefined : await hashPassword(password),
    roles: ['admin'],
    account: crypto.randomUUID(),
    isDisabled: false,
  })
  // Another process was first.
  return added ?? ensureUser({ users }, { name, password })
}

async function ensurePresetKey({ apiKeys }: Needs, admin: User, key: string | undefined): Promise<void> {
  const secretHash = key === undefined ? undefined : hashApiKey(key)
  const known = secretHash === undefined ? undefined : await apiKeys.find(secretHash)
  const isOwn = known?.user.id === admin.id
  if (isOwn && known.key.name === presetKeyName) return
  await apiKeys.remove(admin.id, presetKeyName)
  // The key is one that he has already, under another name.
  if (isOwn) return
  // The configuration names another administrator than it did, with the same key.
  if (known !== undefined) await apiKeys.remove(known.user.id, known.key.name)
  if (secretHash !== undefined) {
    await apiKeys.add({ userId: admin.id, name: presetKeyName, secretHash, ...unlimited })
  }
}
