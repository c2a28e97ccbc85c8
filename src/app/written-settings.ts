import type { Setting } from './setting-kinds.ts'
import { type Config, settingsTable } from './settings.ts'

/** Settings as a file holds them: by sections. */
export interface SettingsTree {
  [name: string]: unknown
}

export interface WrittenSettings {
  readonly tree: SettingsTree
  /** The names of settings that have a value which is not in the tree. */
  readonly leftOut: readonly string[]
}

/** An access key is of no use without its secret, and the two may not be set one by one. */
const companions: Readonly<Partial<Record<keyof Config, keyof Config>>> = { s3AccessKey: 's3SecretKey' }

/**
 * The settings in force as a settings file that gives the same configuration when it is read. Without `withSecrets` the
 * secrets are left out, so that nothing in the file stands for them by mistake; of the database's address only the password.
 */
export function writeSettings(config: Config, { withSecrets = false } = {}): WrittenSettings {
  const tree: SettingsTree = {}
  const leftOut: string[] = []
  for (const [key, setting] of Object.entries(settingsTable) as [keyof Config, Setting<unknown>][]) {
    const value = config[key]
    if (value === undefined) continue
    const { isSecret } = settingsTable[companions[key] ?? key].kind
    const shown = isSecret && !withSecrets ? withoutSecret(key, config) : writeValue(setting, value)
    if (shown !== undefined) place(tree, setting.name.split('.'), shown)
    if (isSecret && shown !== value)
      leftOut.push(shown === undefined ? setting.name : `the password of ${setting.name}`)
  }
  return { tree, leftOut }
}

function writeValue({ kind }: Setting<unknown>, value: unknown): unknown {
  if (kind.write !== undefined) return kind.write(value)
  return value instanceof Map ? Object.fromEntries(value) : value
}

/** Without its address, a server would make a new database where it should use the one that is there. */
function withoutSecret(key: keyof Config, { databaseUrl }: Config): string | undefined {
  if (key !== 'databaseUrl' || databaseUrl === undefined) return undefined
  const url = new URL(databaseUrl)
  if (url.password === '' && !url.searchParams.has('password')) return databaseUrl
  url.password = ''
  url.searchParams.delete('password')
  return url.href
}

function place(tree: SettingsTree, [name = '', ...rest]: readonly string[], value: unknown): void {
  if (rest.length === 0) {
    tree[name] = value
    return
  }
  const section: SettingsTree = Object(tree[name] ?? {})
  tree[name] = section
  place(section, rest, value)
}
