import { existsSync, readFileSync } from 'node:fs'
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
    if (variable.startsWith(prefix) && !variables.has(variable) && !fromKubernetes.test(variable)) {
      faults.push(`${variable} (in the environment) is not a setting`)
    }
  }
  const entries = settings.map(([key, setting]) => [key, readSetting(setting, fromFile, environment, faults)])
  const config: Config = Object.freeze(Object.fromEntries(entries))
  if (faults.length === 0) faults.push(...findContradictions(config))
  if (faults.length > 0) throw new ConfigFault(faults)
  return config
}

/** Settings that are right each for itself, and wrong together. */
function findContradictions({ authUrl, jwksUrl, jwtIssuer, jwtAudience }: Config): string[] {
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

function readSetting(
  { name, variable, kind }: Setting<unknown>,
  fromFile: ReadonlyMap<string, unknown>,
  environment: Environment,
  faults: string[],
): unknown {
  // An empty variable is how compose files and shells write one that is not set.
  const inEnvironment = environment[variable] || undefined
  const given = inEnvironment ?? fromFile.get(name)
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

const sections = new Set(settings.map(([, { name }]) => name.split('.')[0]).filter((section) => section !== 'data_dir'))

function flatten(name: string, value: unknown): [string, unknown][] {
  const isSection = sections.has(name) && typeof value === 'object' && value !== null && !Array.isArray(value)
  return isSection ? Object.entries(value).map(([key, inner]) => [`${name}.${key}`, inner]) : [[name, value]]
}
