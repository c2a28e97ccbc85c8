import { RegistryRefusal, Unavailable } from '../oci/errors.ts'
import type { RepositoryName } from '../oci/names.ts'
import { matchesPattern, type RepositoryPattern } from '../oci/repository-pattern.ts'
import type { Grant, Principal, Right } from '../ports/identity.ts'

/** Rights that nobody has whose identity could not be confirmed just now: their deeds cannot be taken back. */
const needsConfirmation: ReadonlySet<Right> = new Set(['delete', 'operate'])

/** The one place that decides who may do what. Refused unless a grant allows it. */
export function isAllowed(principal: Principal, right: Right, repository?: RepositoryName): boolean {
  if (repository === undefined && right === 'pull' && principal.catalog === 'none') return false
  return principal.grants.some((grant) => grant.rights.has(right) && covers(grant, right, repository))
}

/**
 * A grant for some repositories is no grant for the account as a whole; but who may pull somewhere may ask for the list,
 * and sees of it what he may pull.
 */
function covers({ repositories }: Grant, right: Right, repository: RepositoryName | undefined): boolean {
  if (repositories === undefined) return true
  if (repository === undefined) return right === 'pull'
  return repositories.some((pattern) => matchesPattern(pattern, repository))
}

/** Says no in the same words whether the repository exists or not. */
export function checkAllowed(principal: Principal, right: Right, repository?: RepositoryName): void {
  if (!isAllowed(principal, right, repository)) throw refusalFor(principal, right)
  if (principal.isUnconfirmed && needsConfirmation.has(right)) throw new Unavailable('the identity service')
}

function refusalFor({ kind }: Principal, right: Right): RegistryRefusal {
  // Somebody who can show more than he did is asked to; who cannot, is told so.
  if (kind === 'anonymous') return new RegistryRefusal('unauthenticated')
  return new RegistryRefusal(kind === 'scoped' ? 'scope-insufficient' : 'denied', { right })
}

/** Somebody with a token that says nothing of this repository, though another token of his might. */
export function lacksScopeFor({ kind, grants }: Principal, repository: RepositoryName): boolean {
  if (kind !== 'scoped') return false
  return !grants.some(({ repositories }) => repositories?.some((pattern) => matchesPattern(pattern, repository)))
}

/** What a caller may pass on just now, to a token of his own. */
export function isGrantable(principal: Principal, right: Right, repository: RepositoryName): boolean {
  if (principal.isUnconfirmed && needsConfirmation.has(right)) return false
  return isAllowed(principal, right, repository)
}

/** Which repositories the caller's catalog shows: those of these patterns, or all of the account. */
export function listablePatterns(principal: Principal): readonly RepositoryPattern[] | undefined {
  const { catalog } = principal
  if (catalog !== undefined) return catalog === 'all' ? undefined : catalog === 'none' ? [] : catalog
  const pulls = principal.grants.filter((grant) => grant.rights.has('pull'))
  if (pulls.some((grant) => grant.repositories === undefined)) return undefined
  return pulls.flatMap((grant) => grant.repositories ?? [])
}
