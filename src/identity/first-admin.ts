import type { UserStore } from '../ports/user-store.ts'
import { generateApiKey, hashApiKey } from './api-keys.ts'
import { hashPassword, isPassword } from './passwords.ts'

export interface AdminPreset {
  readonly name: string
  readonly apiKey: string | undefined
  readonly password: string | undefined
}

const firstKeyName = 'first'
const presetKeyName = 'preset'

/**
 * Sees to it that somebody can get in: the administrator with the preset credentials, or on a first start with an API
 * key that is made here and given back, to be shown once and never again.
 */
export async function ensureAdmin(users: UserStore, preset: AdminPreset): Promise<string | undefined> {
  const known = await users.findUser(preset.name)
  const passwordHash = await passwordHashFor(preset.password, known?.passwordHash)
  const admin =
    known !== undefined && known.passwordHash === passwordHash
      ? known
      : await users.saveUser({
          name: preset.name,
          passwordHash,
          roles: known?.roles ?? ['admin'],
          account: known?.account ?? crypto.randomUUID(),
          isDisabled: known?.isDisabled ?? false,
        })
  if (preset.apiKey !== undefined) {
    await users.saveApiKey(admin.id, presetKeyName, hashApiKey(preset.apiKey), undefined)
    return undefined
  }
  if (await users.hasApiKey(admin.id)) return undefined
  const key = generateApiKey()
  await users.saveApiKey(admin.id, firstKeyName, hashApiKey(key), undefined)
  return key
}

/** The hash that stands, unless the preset password is another one. */
async function passwordHashFor(preset: string | undefined, known: string | undefined): Promise<string | undefined> {
  if (preset === undefined) return known
  return known !== undefined && (await isPassword(preset, known)) ? known : hashPassword(preset)
}
