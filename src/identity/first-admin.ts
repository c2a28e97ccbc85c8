import type { ApiKeys } from '../ports/api-keys.ts'
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
  readonly account: string
  /** Made just now: to be shown once and never again. */
  readonly firstApiKey: string | undefined
}

/**
 * Sees to it that somebody can get in: the administrator with the preset credentials, or where he would have neither
 * key nor password, with an API key that is made here. A preset key is good as long as the configuration says so.
 */
export async function ensureAdmin(needs: Needs, preset: AdminPreset): Promise<Admin> {
  const admin = await ensureUser(needs, preset)
  await ensurePresetKey(needs, admin, preset.apiKey)
  const { account, passwordHash } = admin
  const canGetIn = passwordHash !== undefined || (await needs.apiKeys.list(admin.id)).length > 0
  if (canGetIn) return { account, firstApiKey: undefined }
  const firstApiKey = generateApiKey()
  const secretHash = hashApiKey(firstApiKey)
  await needs.apiKeys.add({ userId: admin.id, name: firstKeyName, secretHash, ...unlimited })
  return { account, firstApiKey }
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
