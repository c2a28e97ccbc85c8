// What deploy/ must hold to, as rules over texts, so that a planted fault can prove each of them.
import { readConfig } from '../../src/app/config.ts'
import { closingMs } from '../../src/app/serving.ts'
import { settingsTable } from '../../src/app/settings.ts'
import { parseDuration } from '../../src/lib/quantities.ts'

const settings = Object.values(settingsTable)
const variables = new Set(settings.map(({ variable }) => variable))
const names = new Set(settings.map(({ name }) => name))
const secretVariables: ReadonlySet<string> = new Set(
  settings.filter(({ kind }) => kind.isSecret).map(({ variable }) => variable),
)

/** Variables that no setting has. A name that ends in an underscore is a prefix that a text speaks of. */
export function findUnknownVariables(text: string): string[] {
  const used = [...text.matchAll(/\bBERTH_[A-Z0-9_]*[A-Z0-9]\b/g)].map(([name]) => name)
  return used.filter((name) => !variables.has(name))
}

/** Settings in backticks, such as `server.drain`, that are none. */
export function findUnknownSettings(text: string): string[] {
  const sections = new Set([...names].map((name) => name.split('.')[0]))
  const used = [...text.matchAll(/`([a-z_]+(?:\.[a-z0-9_]+)+)(?::[^`]*)?`/g)].map((match) => match[1] ?? '')
  return used.filter((name) => sections.has(name.split('.')[0]) && !names.has(name) && name !== 'storage.s3')
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** What stands at a path of a parsed document, which must be a map. */
export function mapAt(document: unknown, ...path: readonly string[]): Record<string, unknown> {
  let value = document
  for (const step of path) value = isRecord(value) ? value[step] : undefined
  if (!isRecord(value)) throw new Error(`there is no map at ${path.join('.')}`)
  return value
}

/** Settings below a map of sections that are none. */
export function findStrangeSettings(config: Readonly<Record<string, unknown>>, above = ''): string[] {
  return Object.entries(config).flatMap(([key, value]) => {
    const name = above === '' ? key : `${above}.${key}`
    if (isRecord(value)) return findStrangeSettings(value, name)
    return names.has(name) ? [] : [name]
  })
}

/** `${NAME:?...}` has to be given; `${NAME:-...}` has a default. A secret must be the first, and never a text of its own. */
export function findGuessableSecrets(environment: Readonly<Record<string, unknown>>): string[] {
  const isSecret = (name: string): boolean => secretVariables.has(name) || /PASSWORD|SECRET|ACCESS_KEY/.test(name)
  return Object.entries(environment)
    .filter(([name]) => isSecret(name))
    .filter(([, value]) => !/\$\{[A-Z0-9_]+:\?[^}]+\}/.test(String(value)) || String(value).includes(':-'))
    .map(([name]) => name)
}

/** Images without a version, or with one that moves by its name. */
export function findLooseImages(text: string): string[] {
  const images = [...text.matchAll(/^\s*image:\s*(\S+)\s*$|^ARG \w+_IMAGE=(\S+)$/gm)].map(
    ([, inCompose, inDockerfile]) => inCompose ?? inDockerfile ?? '',
  )
  return images.filter((image) => !/(?::[\w.-]*\d[\w.-]*|@sha256:[0-9a-f]{64})$/.test(image))
}

/** Settings whose values are secret, and that the chart's check does not look for in what becomes a ConfigMap. */
export function findSecretsNotRefused(template: string): string[] {
  const refused = /if or (.*) -}}\n{{- fail "secrets/.exec(template)?.[1] ?? ''
  const looked = new Set(refused.split(' ').map((word) => word.slice(word.lastIndexOf('.') + 1)))
  const secrets = settings.filter(({ kind }) => kind.isSecret).map(({ name }) => name)
  return secrets.filter((name) => !looked.has(name.slice(name.lastIndexOf('.') + 1)))
}

/** How long a server may take to stop with these variables: no grace period may be shorter. */
export function stopMs(environment: Readonly<Record<string, string>>): number {
  const { shutdownDelayMs, drainMs } = readConfig('/dev/null', environment)
  return shutdownDelayMs + drainMs + closingMs
}

/** nginx's directives about bodies and upstreams, by name; headers by their name too. */
export function nginxDirectives(text: string): ReadonlyMap<string, string> {
  const found = text.matchAll(/^\s*(client_max_body_size|proxy_\w+(?: [A-Z][\w-]*)?)\s+([^;]+);/gm)
  return new Map([...found].map(([, name = '', value = '']) => [name, value]))
}

/** What the second text says otherwise than the first, or not at all; where requests go may differ. */
export function findNginxDifferences(wanted: string, actual: string): string[] {
  const given = nginxDirectives(actual)
  return [...nginxDirectives(wanted)]
    .filter(([name, value]) => name !== 'proxy_pass' && given.get(name) !== value)
    .map(([name, value]) => `${name} ${value}`)
}

/** Idle connections that a proxy keeps must be given up before Berth does it. */
export function findLateConnections(text: string, pattern: RegExp): string[] {
  const kept = [...text.matchAll(new RegExp(pattern, 'gm'))].map((match) => match[1] ?? '')
  const isEarly = (time: string): boolean =>
    (parseDuration(time) ?? Infinity) < settingsTable.idleMs.kind.fallback / 1.5
  return kept.length === 0 ? [`nothing like ${pattern}`] : kept.filter((time) => !isEarly(time))
}

/** Values that the schema does not know, and properties of the schema that have no value; `global` is Helm's. */
export function findSchemaGaps(values: unknown, schema: unknown, path = ''): string[] {
  if (!isRecord(schema) || !isRecord(schema['properties']) || !isRecord(values)) return []
  const { properties } = schema
  const known = Object.keys(properties).filter((name) => name !== 'global')
  const gaps = [
    ...Object.keys(values).filter((name) => !known.includes(name)),
    ...known.filter((name) => !(name in values)),
  ]
  const inner = known.flatMap((name) => findSchemaGaps(values[name], properties[name], `${path}${name}.`))
  return [...gaps.map((name) => path + name), ...inner]
}

/** Secret settings that a template gives otherwise than by a reference to a Secret. */
export function findSecretsNotByReference(template: string): string[] {
  const given = template.matchAll(/- name: (BERTH_\w+)\n\s*(\S.*)/g)
  return [...given]
    .filter(([, name = '', next = '']) => secretVariables.has(name) && !/^valueFrom: \{ secretKeyRef: /.test(next))
    .map(([, name = '']) => name)
}
