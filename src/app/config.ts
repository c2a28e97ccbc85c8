import { existsSync, readFileSync } from 'node:fs'
import { findMemoryContradictions } from './memory-settings.ts'
import type { Setting } from './setting-kinds.ts'
import { type Config, settingsTable } from './settings.ts'

/**
 * The settings in force: defaults, then the file, then the environment. This is the only reader of the environment. All
 * that is wrong is found and told at once, before a port opens.
 */
export class ConfigFault extends Error {
  override readonly name = 'ConfigFault'
  readonly faults: readonly string[]

  constructor(faults: readonly string[]) {
    super(`the configuration is wrong:\n${faults.map((fault) => `  - ${fault}`).join('\n')}`)
    this.faults = faults
  }
}

const defaultFile = 'berth.yaml'
const prefix = 'BERTH_'
const targetPrefix = 'BERTH_TO_'

/** Kubernetes puts these into every pod beside a Service that is named `berth`. No setting has such a name. */
const fromKubernetes =
  /^BERTH_(?:SERVICE_HOST|SERVICE_PORT(?:_[A-Z0-9_]+)?|PORT(?:_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)?)$/

type Environment = Readonly<Record<string, string | undefined>>
const settings: readonly [string, Setting<unknown>][] = Object.entries(settingsTable)

export function readConfig(file: string | undefined, environment: Environment = process.env): Config {
  const faults: string[] = []
  const fromFile = readSettingsFile(file, faults)
  const known = new Set(settings.map(([, { name }]) => name))
  for (const name of fromFile.keys()) {
    if (!known.has(name)) faults.push(`${name} (in the file) is not a setting`)
  }
  const variables = new Set(settings.map(([, { variable }]) => variable))
  for (const variable of Object.keys(environment)) {
    // Those of a move say where it goes: they may be there while a server starts, or while a move is aborted.
    if (variable.startsWith(targetPrefix) || fromKubernetes.test(variable)) continue
    if (variable.startsWith(prefix) && !variables.has(variable)) {
      faults.push(`${variable} (in the environment) is not a setting`)
    }
  }
  const entries = settings.map(([key, setting]) => [
    key,
    readSetting(withoutStrangers(setting, fromFile, environment), fromFile, environment, faults),
  ])
  const config: Config = Object.freeze(Object.fromEntries(entries))
  if (faults.length === 0) faults.push(...findContradictions(config))
  if (faults.length > 0) throw new ConfigFault(faults)
  return config
}

/** Whether a script of npm started this process. Images and system services start it without npm. */
export function isStartedByNpm(environment: Environment = process.env): boolean {
  return Boolean(environment['npm_execpath'])
}

/**
 * For a move: the settings in force, and those of the file that says where it goes. Of those the environment speaks with
 * `BERTH_TO_` in place of `BERTH_`; the usual variables of others count for both.
 */
export function readMoveConfigs(
  file: string | undefined,
  targetFile: string,
  environment: Environment = process.env,
): { readonly source: Config; readonly target: Config } {
  const variables = Object.entries(environment)
  const own = variables.filter(([name]) => !name.startsWith(targetPrefix))
  const others = variables.flatMap(([name, value]): [string, string | undefined][] => {
    if (name.startsWith(targetPrefix)) return [[prefix + name.slice(targetPrefix.length), value]]
    return name.startsWith(prefix) ? [] : [[name, value]]
  })
  const source = readConfig(file, Object.fromEntries(own))
  try {
    return { source, target: readConfig(targetFile, Object.fromEntries(others)) }
  } catch (error) {
    if (!(error instanceof ConfigFault)) throw error
    const faults = error.faults.map((fault) => fault.replace(/^BERTH_/, targetPrefix))
    throw new ConfigFault(faults.map((fault) => `where it goes: ${fault}`))
  }
}

/** Settings that are right each for itself, and wrong together. */
function findContradictions(config: Config): string[] {
  return [
    ...findIdentityContradictions(config),
    ...findStorageContradictions(config),
    ...findMemoryContradictions(config),
  ]
}

function findStorageContradictions(config: Config): string[] {
  const { bucket, s3AccessKey, s3SecretKey, s3RoleArn, s3TokenFile, s3Encryption, s3KmsKey, redirect } = config
  // The usual variables of S3 may be there for other programs.
  if (bucket === undefined) return redirect ? ['storage.redirect leads nowhere without storage.s3.bucket'] : []
  const faults: string[] = []
  if ((s3AccessKey === undefined) !== (s3SecretKey === undefined)) {
    faults.push('storage.s3.access_key_id and storage.s3.secret_access_key belong together')
  }
  if (s3RoleArn !== undefined && s3TokenFile === undefined) {
    faults.push('storage.s3.role_arn is of no use without storage.s3.token_file')
  }
  if (s3KmsKey !== undefined && s3Encryption !== 'aws:kms') {
    faults.push('storage.s3.kms_key_id is of no use unless storage.s3.encryption is aws:kms')
  }
  if (redirect && config.redirectLifetimeMs > config.quarantineMs) {
    faults.push('garbage.quarantine must be at least storage.redirect_lifetime: clients may still be on their way')
  }
  return faults
}

function findIdentityContradictions({ authUrl, jwksUrl, jwtIssuer, jwtAudience }: Config): string[] {
  if (jwksUrl === undefined) {
    const idle = { 'auth.issuer': jwtIssuer, 'auth.audience': jwtAudience }
    return Object.entries(idle)
      .filter(([, value]) => value !== undefined)
      .map(([name]) => `${name} checks nothing without auth.jwks_url`)
  }
  const missing = { 'auth.url': authUrl, 'auth.issuer': jwtIssuer, 'auth.audience': jwtAudience }
  // Without both, a token that the same issuer gave for something else would open this registry.
  return Object.entries(missing)
    .filter(([, value]) => value === undefined)
    .map(([name]) => `${name} is needed where auth.jwks_url is set`)
}

/**
 * The usual variables of S3 credentials belong together: where one of these settings is given by its own name, what other
 * programs look for counts for none of them. A token of somebody else would be sent where it must not go. Nor do they count
 * where there is no bucket: then they are there for others, and no fault of ours.
 */
function withoutStrangers(
  setting: Setting<unknown>,
  fromFile: ReadonlyMap<string, unknown>,
  environment: Environment,
): Setting<unknown> {
  const isGiven = ({ name, variable }: Setting<unknown>) => fromFile.has(name) || Boolean(environment[variable])
  if (!credentials.includes(setting)) return setting
  const mayBeMeant = isGiven(settingsTable.bucket) && !credentials.some(isGiven)
  return mayBeMeant ? setting : { ...setting, usualVariable: undefined }
}

const credentials: readonly Setting<unknown>[] = [
  settingsTable.s3AccessKey,
  settingsTable.s3SecretKey,
  settingsTable.s3SessionToken,
  settingsTable.s3RoleArn,
  settingsTable.s3TokenFile,
  settingsTable.s3CredentialsUri,
  settingsTable.s3CredentialsPath,
  settingsTable.s3CredentialsToken,
  settingsTable.s3CredentialsTokenFile,
]

function readSetting(
  { name, variable, usualVariable = '', kind }: Setting<unknown>,
  fromFile: ReadonlyMap<string, unknown>,
  environment: Environment,
  faults: string[],
): unknown {
  // An empty variable is how compose files and shells write one that is not set.
  const inEnvironment = environment[variable] || undefined
  const given = inEnvironment ?? fromFile.get(name) ?? (environment[usualVariable] || undefined)
  if (given === undefined || given === null) return kind.fallback
  const parsed = kind.parse(given)
  if (parsed !== undefined) return parsed.value
  // What stands before an @ in an address is a password, although none belongs there.
  const isSecret = kind.isSecret || String(given).includes('@')
  const shown = isSecret ? 'its value (not shown)' : JSON.stringify(given)
  faults.push(`${inEnvironment === undefined ? name : variable}: ${shown} must be ${kind.allowed}`)
  return kind.fallback
}

/** `server: { port: 5000 }` -> `server.port`. A file that was named must be there; the usual one may be. */
function readSettingsFile(file: string | undefined, faults: string[]): ReadonlyMap<string, unknown> {
  const path = file ?? defaultFile
  if (file === undefined && !existsSync(path)) return new Map()
  let content: unknown
  try {
    content = Bun.YAML.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    faults.push(`${path} cannot be read: ${error instanceof Error ? error.message : String(error)}`)
    return new Map()
  }
  if (content === null || content === undefined) return new Map()
  if (typeof content !== 'object' || Array.isArray(content)) {
    faults.push(`${path} must hold settings by name`)
    return new Map()
  }
  return new Map(Object.entries(content).flatMap(([name, value]) => flatten(name, value)))
}

/** The text of a settings file. */
export function formatSettingsFile(tree: object): string {
  return Bun.YAML.stringify(tree, null, 2)
}

/** `storage.s3.bucket` stands in the sections `storage` and `storage.s3`. */
const sections = new Set(
  settings.flatMap(([, { name }]) => {
    const parts = name.split('.').slice(0, -1)
    return parts.map((_, index) => parts.slice(0, index + 1).join('.'))
  }),
)

function flatten(name: string, value: unknown): [string, unknown][] {
  const isSection = sections.has(name) && typeof value === 'object' && value !== null && !Array.isArray(value)
  return isSection ? Object.entries(value).flatMap(([key, inner]) => flatten(`${name}.${key}`, inner)) : [[name, value]]
}
