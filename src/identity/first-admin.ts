import type { ApiKeys } from '../ports/api-keys.ts'
import type { RowId } from '../ports/row-id.ts'
import type { User, Users } from '../ports/users.ts'
import { generateApiKey, hashApiKey } from './api-key-secrets.ts'
import { presetKeyName } from './names.ts'
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

/**
 * Creates the administrator, or gives it the credentials of the configuration. A key that is no longer there is
 * revoked.
 */
export async function ensureAdmin(needs: Needs, preset: AdminPreset): Promise<Admin> {
  const admin = await ensureUser(needs, preset)
  await ensurePresetKey(needs, admin, preset.apiKey)
  const { id: userId, account, passwordHash } = admin
  const hasKey = (await needs.apiKeys.list(userId)).length > 0
  return { userId, account, hasPassword: passwordHash !== undefined, hasKey }
}

/**
 * Creates an API key for an administrator that has neither a key nor a password. Undefined if none is needed. The key
 * can be shown only once, so call this when nothing can fail any more before the operator sees it.
 */
export async function createFirstKey(
  { apiKeys }: Pick<Needs, 'apiKeys'>,
  { userId, hasPassword, hasKey }: Admin,
): Promise<string | undefined> {
  if (hasPassword || hasKey) return undefined
  const key = generateApiKey()
  const isOurs = await apiKeys.add({ userId, name: firstKeyName, secretHash: hashApiKey(key), ...unlimited })
  // Otherwise another server was faster, and shows its key.
  return isOurs ? key : undefined
}

async function ensureUser(
  { users }: Pick<Needs, 'users'>,
  { name, password }: Omit<AdminPreset, 'apiKey'>,
): Promise<User> {
  const existing = await users.find(name)
  if (existing !== undefined) {
    if (password === undefined || (await isPassword(password, existing.passwordHash))) return existing
    return (await users.change(existing.id, { passwordHash: await hashPassword(password) })) ?? existing
  }
  const added = await users.add({
    name,
    passwordHash: password === undefined ? undefined : await hashPassword(password),
    roles: ['admin'],
    account: crypto.randomUUID(),
    isDisabled: false,
  })
  // Another process was faster.
  return added ?? ensureUser({ users }, { name, password })
}

async function ensurePresetKey({ apiKeys }: Needs, admin: User, key: string | undefined): Promise<void> {
  const secretHash = key === undefined ? undefined : hashApiKey(key)
  const preset = secretHash && { userId: admin.id, name: presetKeyName, secretHash, ...unlimited }
  const find = async () => (secretHash === undefined ? undefined : apiKeys.find(secretHash))
  let existing = await find()
  if (existing === undefined && preset) {
    if (await apiKeys.add(preset)) return
    // The name belongs to an earlier key, or to this key, which another server has just added and may use already.
    existing = await find()
  }
  const isOwn = existing?.user.id === admin.id
  if (isOwn && existing?.key.name === presetKeyName) return
  await apiKeys.remove(admin.id, presetKeyName)
  // The administrator has this key already, with another name.
  if (isOwn) return
  // The configuration names another administrator than before, with the same key.
  if (existing !== undefined) await apiKeys.remove(existing.user.id, existing.key.name)
  if (preset) await apiKeys.add(preset)
}
