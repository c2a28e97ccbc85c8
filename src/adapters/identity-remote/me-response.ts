import { parseTime } from '../../lib/quantities.ts'
import type { RepositoryName } from '../../oci/names.ts'
import { matchesPattern, parseRepositoryPattern, type RepositoryPattern } from '../../oci/repository-pattern.ts'
import type { Grant } from '../../ports/identity.ts'
import type { JsonObject } from './json-request.ts'

// Reads the answer of `/me`, or the claims of a token, which have the same members.

/**
 * The roles that determine the grants. For an API key with limits, another Berth lists in `roles` only the roles that the key
 * has in full, and in `userRoles` all roles of its user. The limits then narrow the grants of the latter.
 */
export function readGrantingRoles(answer: JsonObject, roles: readonly string[]): readonly string[] {
  const { userRoles, rights, repositories } = answer
  const isLimited = Array.isArray(rights) || Array.isArray(repositories)
  return isLimited && Array.isArray(userRoles) ? userRoles.flatMap(nameOfRole) : roles
}

/** The time at which the credential expires, according to the service. */
export function readEnd({ expiresAt }: JsonObject): number {
  return (typeof expiresAt === 'string' ? parseTime(expiresAt) : undefined) ?? Number.POSITIVE_INFINITY
}

/** Undefined if there is no list. A role is a text or an object with a `name`; other members of the list are ignored. */
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
 * The account: the first of the fields that holds a text or a whole number. If the fields hold only other values, the service
 * meant an account that cannot be read. Then the result is an invalid name and not undefined: these callers must not all get
 * the default account.
 */
export function findAccount(answer: JsonObject, fields: readonly string[]): string | undefined {
  const values = fields.map((field) => {
    const value = Object.hasOwn(answer, field) ? answer[field] : null
    return field === 'scope' && isOauthScope(value) ? null : value
  })
  const given = values.filter((value) => value !== null && value !== undefined && value !== '')
  const name = given.find((value) => typeof value === 'string' || Number.isSafeInteger(value))
  if (name !== undefined) return String(name)
  return given.length === 0 ? undefined : invalidName
}

const singleName = /^[A-Za-z0-9][A-Za-z0-9._@-]*$/
/** RFC 6749, 3.3: scope = scope-token *( SP scope-token ). */
const scopeTokens = /^[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*$/
const oidcScopes: ReadonlySet<string> = new Set(['openid', 'profile', 'email', 'address', 'phone', 'offline_access'])

/**
 * In many services the member `scope` holds OAuth scopes (`openid email`, `repo:read`) and not an account. They are one text
 * or a list of texts.
 */
function isOauthScope(value: unknown): boolean {
  const isList = Array.isArray(value) && value.every((item) => typeof item === 'string')
  const text: unknown = isList ? value.join(' ') : value
  if (typeof text !== 'string' || !scopeTokens.test(text)) return false
  return !singleName.test(text) || oidcScopes.has(text)
}

/** Rejected as a name, because it contains a control character. */
const invalidName = '\u0000'

/** The text in the first of the fields that holds one. */
export function findText(answer: JsonObject | undefined, fields: readonly string[]): string | undefined {
  for (const field of fields) {
    const value = answer?.[field]
    if (typeof value === 'string' && value !== '') return value
  }
  return undefined
}

// Every cached principal keeps its patterns, and every request compares them. Dropping a pattern can only reduce rights.
const patternsMax = 100

/**
 * Narrows the grants to the `rights` and `repositories` of the answer. Another Berth sends them for an API key with limits. An
 * unknown right or an invalid pattern allows nothing.
 */
export function narrowGrants(grants: readonly Grant[], answer: JsonObject): readonly Grant[] {
  const rights = readTexts(answer['rights'])
  const patterns = readTexts(answer['repositories'])?.slice(0, patternsMax)
  const repositories = patterns?.flatMap((text) => parseRepositoryPattern(text) ?? [])
  if (rights === undefined && repositories === undefined) return grants
  const allowed = rights === undefined ? undefined : new Set(rights)
  return grants.map((grant) => ({
    rights: allowed === undefined ? grant.rights : grant.rights.intersection(allowed),
    repositories: intersect(grant.repositories, repositories),
  }))
}

/** Whether each limit of the answer is a list or missing. An answer with any other value must not be used. */
export function hasReadableLimits({ rights, repositories }: JsonObject): boolean {
  return [rights, repositories].every((limit) => (limit ?? null) === null || Array.isArray(limit))
}

/** A list is a limit even if it is empty. */
function readTexts(value: unknown): readonly string[] | undefined {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : undefined
}

/** The patterns of one list that the other list covers. Patterns that only overlap are dropped, which can only reduce rights. */
function intersect(
  ones: readonly RepositoryPattern[] | undefined,
  others: readonly RepositoryPattern[] | undefined,
): readonly RepositoryPattern[] | undefined {
  if (ones === undefined || others === undefined) return ones ?? others
  const within = (inner: RepositoryPattern, outer: RepositoryPattern) =>
    // An outer pattern covers a star of the inner one only with a star of its own.
    matchesPattern(outer, inner as string as RepositoryName)
  const covered = [
    ...ones.filter((one) => others.some((other) => within(one, other))),
    ...others.filter((other) => ones.some((one) => within(other, one))),
  ]
  return [...new Set(covered)]
}
