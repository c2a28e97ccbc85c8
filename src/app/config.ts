import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { findMemoryContradictions } from './memory-settings.ts'
import type { Setting } from './setting-kinds.ts'
import { type Config, settingsTable } from './settings.ts'
import { findWorkerContradictions } from './workers/shares.ts'

// Reads the settings: the environment overrides the file, and the file overrides the defaults. No other file reads the
// environment.

/** Contains every invalid setting, so that an operator can correct all of them at once. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(`the configuration is invalid:\n${problems.map((problem) => `  - ${problem}`).join('\n')}`)
    this.problems = problems
  }
}

const defaultFile = 'berth.yaml'
const prefix = 'BERTH_'
const targetPrefix = 'BERTH_TO_'
/** The folder in which the caller of `scripts/berth.mjs` or `npm start` is. The script sets it; it is no setting. */
const callerVariable = 'BERTH_CALLER_FOLDER'

/** Kubernetes sets these variables in every pod of a namespace with a Service named `berth`. No setting has such a name. */
const fromKubernetes =
  /^BERTH_(?:SERVICE_HOST|SERVICE_PORT(?:_[A-Z0-9_]+)?|PORT(?:_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)?)$/

type Environment = Readonly<Record<string, string | undefined>>
const settings: readonly [string, Setting<unknown>][] = Object.entries(settingsTable)

export function readConfig(file: string | undefined, environment: Environment = process.env): Config {
  const problems: string[] = []
  const fromFile = readSettingsFile(file, environment[callerVariable], problems)
  const known = new Set(settings.map(([, { name }]) => name))
  for (const name of fromFile.keys()) {
    if (!known.has(name)) problems.push(`${name} (in the settings file) is not a setting`)
  }
  const variables = new Set(settings.map(([, { variable }]) => variable))
  for (const variable of Object.keys(environment)) {
    // Variables of the target of a move may be set while a server starts or while a move is aborted.
    if (variable === callerVariable || variable.startsWith(targetPrefix) || fromKubernetes.test(variable)) continue
    if (variable.startsWith(prefix) && !variables.has(variable)) {
      problems.push(`${variable} (in the environment) is not a setting`)
    }
  }
  const entries = settings.map(([key, setting]) => [
    key,
    readSetting(withoutForeignVariable(setting, fromFile, environment), fromFile, environment, problems),
  ])
  const config: Config = Object.freeze(Object.fromEntries(entries))
  if (problems.length === 0) problems.push(...findContradictions(config))
  if (problems.length > 0) throw new ConfigError(problems)
  return config
}

/** Whether npm started this process. Container images and system services start it without npm. */
export function isStartedByNpm(environment: Environment = process.env): boolean {
  return Boolean(environment['npm_execpath'])
}

const proxyVariables = ['HTTP_PROXY', 'HTTPS_PROXY', 'http_proxy', 'https_proxy']

/** Whether `fetch` may use an HTTP proxy. */
export function namesProxy(environment: Environment = process.env): boolean {
  return proxyVariables.some((name) => (environment[name] ?? '') !== '')
}

/**
 * The settings of the two registries of a move. In the environment, settings of the target begin with `BERTH_TO_` instead
 * of `BERTH_`. Variables of other programs, such as AWS_REGION, apply to both.
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
    return name.startsWith(prefix) && name !== callerVariable ? [] : [[name, value]]
  })
  const source = readConfig(file, Object.fromEntries(own))
  try {
    return { source, target: readConfig(targetFile, Object.fromEntries(others)) }
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    const problems = error.problems.map((problem) => problem.replace(/^BERTH_/, targetPrefix))
    throw new ConfigError(problems.map((problem) => `target of the move: ${problem}`))
  }
}

/** Finds settings that are valid one by one, but contradict each other. */
function findContradictions(config: Config): string[] {
  return [
    ...findIdentityContradictions(config),
    ...findStorageContradictions(config),
    ...findMemoryContradictions(config),
    ...findWorkerContradictions(config),
  ]
}

function findStorageContradictions(config: Config): string[] {
  const { bucket, s3AccessKey, s3SecretKey, s3RoleArn, s3TokenFile, s3Encryption, s3KmsKey, redirect } = config
  // Without a bucket, AWS variables in the environment belong to other programs.
  if (bucket === undefined) return redirect ? ['storage.redirect needs storage.s3.bucket'] : []
  const problems: string[] = []
  if ((s3AccessKey === undefined) !== (s3SecretKey === undefined)) {
    problems.push('storage.s3.access_key_id and storage.s3.secret_access_key must be set together')
  }
  if (s3RoleArn !== undefined && s3TokenFile === undefined) {
    problems.push('storage.s3.role_arn needs storage.s3.token_file')
  }
  if (s3KmsKey !== undefined && s3Encryption !== 'aws:kms') {
    problems.push('storage.s3.kms_key_id needs storage.s3.encryption to be aws:kms')
  }
  if (redirect && config.redirectLifetimeMs > config.quarantineMs) {
    problems.push(
      'garbage.quarantine must be at least storage.redirect_lifetime, because redirected clients may still read the bytes',
    )
  }
  return problems
}

function findIdentityContradictions({ authUrl, jwksUrl, jwtIssuer, jwtAudience }: Config): string[] {
  if (jwksUrl === undefined) {
    const unused = { 'auth.issuer': jwtIssuer, 'auth.audience': jwtAudience }
    return Object.entries(unused)
      .filter(([, value]) => value !== undefined)
      .map(([name]) => `${name} needs auth.jwks_url`)
  }
  const missing = { 'auth.url': authUrl, 'auth.issuer': jwtIssuer, 'auth.audience': jwtAudience }
  // Without issuer and audience, a token that was issued for another service would be accepted here.
  return Object.entries(missing)
    .filter(([, value]) => value === undefined)
    .map(([name]) => `auth.jwks_url needs ${name}`)
}

/**
 * S3 credentials come either from Berth's own settings or from the AWS variables of other programs, never from a mixture:
 * a mixture could send a session token to the wrong service. Without a bucket, the AWS variables are ignored.
 */
function withoutForeignVariable(
  setting: Setting<unknown>,
  fromFile: ReadonlyMap<string, unknown>,
  environment: Environment,
): Setting<unknown> {
  const isGiven = ({ name, variable }: Setting<unknown>) => fromFile.has(name) || Boolean(environment[variable])
  if (!credentials.includes(setting)) return setting
  const isForBerth = isGiven(settingsTable.bucket) && !credentials.some(isGiven)
  return isForBerth ? setting : { ...setting, usualVariable: undefined }
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
  problems: string[],
): unknown {
  // Compose files and shells write an unset variable as an empty one.
  const inEnvironment = environment[variable] || undefined
  const given = inEnvironment ?? fromFile.get(name) ?? (environment[usualVariable] || undefined)
  if (given === undefined || given === null) return kind.fallback
  const parsed = kind.parse(given)
  if (parsed !== undefined) return parsed.value
  // The part of an address before an @ may be a password.
  const isSecret = kind.isSecret || String(given).includes('@')
  const shown = isSecret ? 'the value (not shown)' : JSON.stringify(given)
  problems.push(`${inEnvironment === undefined ? name : variable}: ${shown} must be ${kind.allowed}`)
  return kind.fallback
}

/** `server: { port: 5000 }` -> `server.port`. A file that was given explicitly must exist; the default file may be absent. */
function readSettingsFile(
  file: string | undefined,
  callerFolder: string | undefined,
  problems: string[],
): ReadonlyMap<string, unknown> {
  const path = locate(file ?? defaultFile, callerFolder)
  if (file === undefined && !existsSync(path)) return new Map()
  let content: unknown
  try {
    content = Bun.YAML.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    problems.push(`${path} cannot be read: ${error instanceof Error ? error.message : String(error)}`)
    return new Map()
  }
  if (content === null || content === undefined) return new Map()
  if (typeof content !== 'object' || Array.isArray(content)) {
    problems.push(`${path} must contain a map of settings`)
    return new Map()
  }
  return new Map(Object.entries(content).flatMap(([name, value]) => flatten(name, value)))
}

/** A relative path begins at the folder of the caller, if the file exists there. Otherwise it begins at the working folder. */
function locate(file: string, callerFolder: string | undefined): string {
  const besideCaller = callerFolder === undefined ? file : resolve(callerFolder, file)
  return existsSync(besideCaller) ? besideCaller : file
}

export function formatSettingsFile(tree: object): string {
  return Bun.YAML.stringify(tree, null, 2)
}

/** `storage.s3.bucket` is in the sections `storage` and `storage.s3`. */
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
