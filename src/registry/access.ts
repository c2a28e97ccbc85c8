import { RegistryRefusal, Unavailable } from '../oci/errors.ts'
import type { RepositoryName } from '../oci/names.ts'
import { matchesPattern, type RepositoryPattern } from '../oci/repository-pattern.ts'
import type { Grant, Principal, Right } from '../ports/identity.ts'

/** Rights that need a confirmed identity, because what they do cannot be undone. */
const needsConfirmation: ReadonlySet<Right> = new Set(['delete', 'operate'])

/**
 * Decides access to content. What no grant allows is refused. `identity/rights.ts` decides which rights a caller may
 * give to others.
 */
export function isAllowed(principal: Principal, right: Right, repository?: RepositoryName): boolean {
  if (repository === undefined && right === 'pull' && principal.catalog === 'none') return false
  return principal.grants.some((grant) => grant.rights.has(right) && covers(grant, right, repository))
}

/**
 * A grant for some repositories gives no right over the whole account. It does allow the catalog, which then shows only
 * the repositories that the caller may pull.
 */
function covers({ repositories }: Grant, right: Right, repository: RepositoryName | undefined): boolean {
  if (repositories === undefined) return true
  if (repository === undefined) return right === 'pull'
  return repositories.some((pattern) => matchesPattern(pattern, repository))
}

/** Throws unless the caller has the right. The refusal does not tell whether the repository exists. */
export function checkAllowed(principal: Principal, right: Right, repository?: RepositoryName): void {
  if (!isAllowed(principal, right, repository)) throw refusalFor(principal, right)
  if (principal.isUnconfirmed && needsConfirmation.has(right)) throw new Unavailable('identity-service')
}

function refusalFor({ kind }: Principal, right: Right): RegistryRefusal {
  // A caller that can present other credentials is asked for them.
  if (kind === 'anonymous') return new RegistryRefusal('unauthenticated')
  return new RegistryRefusal(kind === 'scoped' ? 'scope-insufficient' : 'denied', { right })
}

/** Whether the caller has a scoped token that does not name this repository. It may get another token that does. */
export function lacksScopeFor({ kind, grants }: Principal, repository: RepositoryName): boolean {
  if (kind !== 'scoped') return false
  return !grants.some(({ repositories }) => repositories?.some((pattern) => matchesPattern(pattern, repository)))
}

/** Whether the caller may have this right in a scoped token. */
export function isGrantable(principal: Principal, right: Right, repository: RepositoryName): boolean {
  if (principal.isUnconfirmed && needsConfirmation.has(right)) return false
  return isAllowed(principal, right, repository)
}

/** The patterns of the repositories in the caller's catalog. Undefined: all of the account. */
export function listablePatterns(principal: Principal): readonly RepositoryPattern[] | undefined {
  const { catalog } = principal
  if (catalog !== undefined) return catalog === 'all' ? undefined : catalog === 'none' ? [] : catalog
  const pulls = principal.grants.filter((grant) => grant.rights.has('pull'))
  if (pulls.some((grant) => grant.repositories === undefined)) return undefined
  return pulls.flatMap((grant) => grant.repositories ?? [])
}
