import type { Setting } from './setting-kinds.ts'
import { type Config, settingsTable } from './settings.ts'

/** Settings as in a settings file: nested by section. */
export interface SettingsTree {
  [name: string]: unknown
}

export interface WrittenSettings {
  readonly tree: SettingsTree
  /** Names of settings that have a value but are not in the tree. */
  readonly leftOut: readonly string[]
}

/** An access key and its secret must be set together, so they are left out together. */
const companions: Readonly<Partial<Record<keyof Config, keyof Config>>> = { s3AccessKey: 's3SecretKey' }

/**
 * The current settings as a settings file. Reading the file gives the same configuration. Without `withSecrets`, secrets
 * are left out. The address of the database is kept without its password.
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

/** Keeps the address of the database: without it, a server would create a new SQLite database. */
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
