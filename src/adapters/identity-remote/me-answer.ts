import { parseTime } from '../../lib/quantities.ts'
import type { RepositoryName } from '../../oci/names.ts'
import { matchesPattern, parseRepositoryPattern, type RepositoryPattern } from '../../oci/repository-pattern.ts'
import type { Grant } from '../../ports/identity.ts'
import type { JsonObject } from './get-json.ts'

/**
 * The roles that grants come from. A Berth that is asked about a limited key says which roles it has in full, and beside
 * them all of its user's, which the limits then narrow.
 */
export function rolesBehind(said: JsonObject, roles: readonly string[]): readonly string[] {
  const { userRoles, rights, repositories } = said
  const isLimited = Array.isArray(rights) || Array.isArray(repositories)
  return isLimited && Array.isArray(userRoles) ? userRoles.flatMap(nameOfRole) : roles
}

/** When the service says that the credential ends; it can only shorten what else is known of that. */
export function readEnd({ expiresAt }: JsonObject): number {
  return (typeof expiresAt === 'string' ? parseTime(expiresAt) : undefined) ?? Number.POSITIVE_INFINITY
}

/** Undefined unless there is a list. A role is a text, or an object with a `name`; anything else in the list is ignored. */
export function readRoles({ roles }: JsonObject): readonly string[] | undefined {
  return Array.isArray(roles) ? roles.flatMap(nameOfRole) : undefined
}

function nameOfRole(role: unknown): string[] {
  if (typeof role === 'string') return [role]
  if (typeof role !== 'object' || role === null || !Object.hasOwn(role, 'name')) return []
  const { name } = role as { readonly name?: unknown }
  return typeof name === 'string' ? [name] : []
}

/**
 * The account that is named first: by a text, or by a whole number. Anything else in its place is not a name, but the
 * service meant one: its callers must not all fall into the account of those for whom no account is named.
 */
export function findAccount(said: JsonObject, fields: readonly string[]): string | undefined {
  const values = fields.map((field) => {
    const value = Object.hasOwn(said, field) ? said[field] : null
    return field === 'scope' && isOauthScope(value) ? null : value
  })
  const given = values.filter((value) => value !== null && value !== undefined && value !== '')
  const name = given.find((value) => typeof value === 'string' || Number.isSafeInteger(value))
  if (name !== undefined) return String(name)
  return given.length === 0 ? undefined : notAName
}

const singleName = /^[A-Za-z0-9][A-Za-z0-9._@-]*$/
/** RFC 6749, 3.3: scope = scope-token *( SP scope-token ). */
const scopeTokens = /^[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*$/
const oidcScopes: ReadonlySet<string> = new Set(['openid', 'profile', 'email', 'address', 'phone', 'offline_access'])

/**
 * Many services write OAuth scopes (`openid email`, `repo:read`) into the member where others name the account: as one
 * text, or as a list of texts.
 */
function isOauthScope(value: unknown): boolean {
  const isList = Array.isArray(value) && value.every((item) => typeof item === 'string')
  const text: unknown = isList ? value.join(' ') : value
  if (typeof text !== 'string' || !scopeTokens.test(text)) return false
  return !singleName.test(text) || oidcScopes.has(text)
}

/** No account is called so: it holds a control character. */
const notAName = '\u0000'

/** The first of these fields that holds a text. */
export function findText(said: JsonObject | undefined, fields: readonly string[]): string | undefined {
  for (const field of fields) {
    const value = said?.[field]
    if (typeof value === 'string' && value !== '') return value
  }
  return undefined
}

// Of each person who is remembered, so many are: ten thousand answers as long as they may be would be too much. Each
// request walks along the patterns besides. What is cut off gives less, never more.
const patternsMax = 100

/**
 * What is left of grants where the answer limits them: a Berth that is asked answers so of API keys that are good for
 * some rights or repositories only. A right or a pattern that means nothing here allows nothing.
 */
export function narrowGrants(grants: readonly Grant[], said: JsonObject): readonly Grant[] {
  const rights = readTexts(said['rights'])
  const patterns = readTexts(said['repositories'])?.slice(0, patternsMax)
  const repositories = patterns?.flatMap((text) => parseRepositoryPattern(text) ?? [])
  if (rights === undefined && repositories === undefined) return grants
  const allowed = rights === undefined ? undefined : new Set(rights)
  return grants.map((grant) => ({
    rights: allowed === undefined ? grant.rights : grant.rights.intersection(allowed),
    repositories: intersect(grant.repositories, repositories),
  }))
}

/**
 * Whether each limit in an answer is a list or missing. What another value allows is unknown, so an answer that has one
 * must not be used.
 */
export function hasReadableLimits({ rights, repositories }: JsonObject): boolean {
  return [rights, repositories].every((limit) => (limit ?? null) === null || Array.isArray(limit))
}

/** A list is a limit even if it is empty. */
function readTexts(value: unknown): readonly string[] | undefined {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : undefined
}

/** Patterns that only overlap are dropped: what is left is never more than both allow. */
function intersect(
  ones: readonly RepositoryPattern[] | undefined,
  others: readonly RepositoryPattern[] | undefined,
): readonly RepositoryPattern[] | undefined {
  if (ones === undefined || others === undefined) return ones ?? others
  const within = (inner: RepositoryPattern, outer: RepositoryPattern) =>
    // The stars of the inner one can only stand where the outer one allows any text.
    matchesPattern(outer, inner as string as RepositoryName)
  const left = [
    ...ones.filter((one) => others.some((other) => within(one, other))),
    ...others.filter((other) => ones.some((one) => within(other, one))),
  ]
  return [...new Set(left)]
}
