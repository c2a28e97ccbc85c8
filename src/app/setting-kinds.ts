import { isUserName } from '../identity/names.ts'
import type { RoleMap } from '../identity/rights.ts'
import { parseByteCount, parseDuration, writeByteCount, writeDuration } from '../lib/quantities.ts'
import { parseRepositoryPattern, type RepositoryPattern } from '../oci/repository-pattern.ts'
import type { Right } from '../ports/identity.ts'

/** How settings of one kind are parsed, described and written. */
export interface Kind<T> {
  readonly fallback: T
  /** The default, as the reference page shows it. */
  readonly fallbackText: string
  /** The allowed values, for error messages: `must be <allowed>`. */
  readonly allowed: string
  readonly isSecret: boolean
  /** Undefined if the value is not allowed. */
  parse(given: unknown): { readonly value: T } | undefined
  /** Turns the value into what `parse` accepts, if that differs from the value. */
  write?(value: T): unknown
}

export interface Setting<T> {
  readonly name: string
  readonly variable: string
  /** The variable that other programs use for the same setting. Our own variable takes precedence. */
  readonly usualVariable: string | undefined
  readonly meaning: string
  readonly kind: Kind<T>
}

export function setting<T>(name: string, kind: Kind<T>, meaning: string, usualVariable?: string): Setting<T> {
  return { name, variable: `BERTH_${name.toUpperCase().replaceAll('.', '__')}`, usualVariable, meaning, kind }
}

export function kind<T>(
  fallback: T,
  fallbackText: string,
  allowed: string,
  read: (given: string) => T | undefined,
  isSecret = false,
): Kind<T> {
  return {
    fallback,
    fallbackText,
    allowed,
    isSecret,
    parse(given) {
      if (typeof given !== 'string' && typeof given !== 'number' && typeof given !== 'boolean') return undefined
      const value = read(String(given))
      return value === undefined ? undefined : { value }
    },
  }
}

const allowedText = 'a non-empty string'
const parseText = (given: string): string | undefined => (given === '' ? undefined : given)

export function text(fallback: string): Kind<string> {
  return kind(fallback, fallback, allowedText, parseText)
}

export function userName(fallback: string): Kind<string> {
  return kind(
    fallback,
    fallback,
    '1 to 128 characters: letters, digits and . _ @ + -. It must begin with a letter or a digit, and must not be apikey or bearer',
    (given) => (isUserName(given) ? given : undefined),
  )
}

export function secret(): Kind<string | undefined> {
  return kind<string | undefined>(
    undefined,
    '',
    'a string of 12 to 1024 characters',
    (given) => (given.length < 12 || given.length > 1_024 ? undefined : given),
    true,
  )
}

// Every way to send a credential can transport these characters. A comma would make a header look repeated.
const apiKeyPattern = /^[\x21-\x2b\x2d-\x7e]{20,1024}$/

/** An API key that the operator chooses. */
export function apiKey(): Kind<string | undefined> {
  return {
    fallback: undefined,
    fallbackText: '',
    allowed: '20 to 1024 printable ASCII characters, without spaces and commas',
    isSecret: true,
    // YAML parses digits as a number and rounds it.
    parse: (given) => (typeof given === 'string' && apiKeyPattern.test(given) ? { value: given } : undefined),
  }
}

/** A secret of another service, of any length. */
export function foreignSecret(): Kind<string | undefined> {
  return kind<string | undefined>(undefined, '', allowedText, parseText, true)
}

export function flag(fallback: boolean): Kind<boolean> {
  return kind(fallback, String(fallback), 'true or false', (given) =>
    given === 'true' ? true : given === 'false' ? false : undefined,
  )
}

export function wholeNumber(fallback: number, min: number, max = Number.MAX_SAFE_INTEGER): Kind<number> {
  const limits = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`
  return kind(fallback, String(fallback), `a whole number ${limits}`, (given) => {
    const value = /^\d+$/.test(given) ? Number(given) : Number.NaN
    return value >= min && value <= max ? value : undefined
  })
}

/** How many processes serve requests. */
export function workerCount(max: number): Kind<number | 'auto'> {
  const { allowed, isSecret, parse } = wholeNumber(1, 1, max)
  return {
    fallback: 'auto',
    fallbackText: 'auto',
    allowed: `auto, or ${allowed}`,
    isSecret,
    parse: (given) => (given === 'auto' ? { value: given } : parse(given)),
  }
}

/** A hundred years. Dates this far away can still be computed. */
const longestDuration = '36500d'

export function duration(fallback: string, min = '0s', max = longestDuration): Kind<number> {
  const allowed = `a duration such as 30s, 5m or 24h, at least ${min} and at most ${max}`
  return { ...bounded(fallback, allowed, parseDuration, min, max), write: writeDuration }
}

export function byteCount(fallback: string, min = '1B', max?: string): Kind<number> {
  const allowed = `a size such as 4MiB or 50GiB, at least ${min}${max === undefined ? '' : ` and at most ${max}`}`
  return { ...bounded(fallback, allowed, parseByteCount, min, max), write: writeByteCount }
}

/** The space that must stay free on a disk. */
export function diskReserve(): Kind<number | 'auto'> {
  const allowed = 'auto, 0, or a size such as 500MiB or 10GiB'
  return kind<number | 'auto'>('auto', 'auto', allowed, (given) => (given === 'auto' ? given : parseByteCount(given)))
}

function bounded(
  fallback: string,
  allowed: string,
  parse: (given: string) => number | undefined,
  min: string,
  max: string | undefined,
): Kind<number> {
  const known = (value: string): number => parse(value) ?? 0
  return kind(known(fallback), fallback, allowed, (given) => {
    const value = parse(given)
    if (value === undefined || value < known(min)) return undefined
    return max !== undefined && value > known(max) ? undefined : value
  })
}

export function choice<const T extends string>(...options: readonly [T, ...T[]]): Kind<T> {
  return kind<T>(options[0], options[0], `one of ${options.join(', ')}`, (given) =>
    options.find((option) => option === given),
  )
}

/** Only characters that stores, proxies and signatures treat alike. No segment may be `.` or `..`. */
export function keyPrefix(): Kind<string> {
  const allowed = 'letters, digits, dots, hyphens and underscores, with slashes between them'
  return kind('', '', allowed, (given) => {
    const isClean = given.length <= 200 && /^[A-Za-z0-9_][A-Za-z0-9._/-]*$/.test(given)
    if (given === '') return given
    return isClean && !/(?:^|\/)\.{0,2}\//.test(`${given.replace(/\/$/, '')}/`) ? given : undefined
  })
}

export function optionalText(): Kind<string | undefined> {
  return kind<string | undefined>(undefined, '', allowedText, parseText)
}

/** A list in the file, or strings separated by commas in the environment. */
export function textList(...fallback: readonly string[]): Kind<readonly string[]> {
  return listOf(fallback, 'a list of strings', (item) => item)
}

// Only algorithms with public keys. With HMAC, an attacker could use the public key as the shared secret.
const algorithms = /^(?:(?:RS|PS|ES)(?:256|384|512)|EdDSA|Ed25519)$/

export function algorithmList(...fallback: readonly string[]): Kind<readonly string[]> {
  return listOf(
    fallback,
    'a list of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512, EdDSA or Ed25519',
    (item) => (algorithms.test(item) ? item : undefined),
  )
}

/** Names of repositories, in which `*` stands for any text. */
export function patternList(): Kind<readonly RepositoryPattern[]> {
  return listOf([], 'a list of repository names, in which `*` stands for any text', parseRepositoryPattern)
}

export function listOf<T extends string>(
  fallback: readonly T[],
  allowed: string,
  parseItem: (item: string) => T | undefined,
): Kind<readonly T[]> {
  return {
    fallback,
    fallbackText: fallback.length === 0 ? '[]' : fallback.join(','),
    allowed,
    isSecret: false,
    parse(given) {
      const items: unknown = typeof given === 'string' ? splitList(given) : given
      if (!Array.isArray(items)) return undefined
      const parsed = items.map((item: unknown) => (typeof item === 'string' ? parseItem(item) : undefined))
      const value = parsed.filter((item) => item !== undefined)
      return value.length === items.length ? { value } : undefined
    },
  }
}

function splitList(given: string): readonly string[] {
  const items = given.split(',').map((item) => item.trim())
  return items.filter((item) => item !== '')
}

/** A map in the file; in the environment `admin=pull+push,reader=pull`. */
export function roleMap(fallback: RoleMap, rights: readonly Right[]): Kind<RoleMap> {
  return {
    fallback,
    fallbackText: [...fallback].map(([role, its]) => `${role}=${its.join('+')}`).join(','),
    allowed: `a map from roles to lists of the rights ${rights.join(', ')} (in the environment: role=right+right,...)`,
    isSecret: false,
    parse(given) {
      const entries = typeof given === 'string' ? rolesFromText(given) : rolesFromObject(given)
      const isKnown = (right: string): right is Right => (rights as readonly string[]).includes(right)
      if (entries === undefined || !entries.every(([role, its]) => role !== '' && its.every(isKnown))) return undefined
      return { value: new Map(entries.map(([role, its]) => [role, its.filter(isKnown)])) }
    },
  }
}

function rolesFromText(given: string): [string, string[]][] {
  return given.split(',').map((entry) => {
    const [role = '', its] = entry.trim().split('=')
    // An entry without `=` is invalid. It gets a right that does not exist, so that `parse` rejects it.
    return [role, its?.split('+').filter((right) => right !== '') ?? ['']]
  })
}

function rolesFromObject(given: unknown): [string, string[]][] | undefined {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return undefined
  const entries = Object.entries(given)
  return entries.every(([, its]) => Array.isArray(its)) ? entries : undefined
}
