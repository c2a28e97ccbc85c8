import { RegistryRefusal } from '../oci/errors.ts'
import type { RepositoryName } from '../oci/names.ts'
import type { Principal, Right } from '../ports/identity.ts'

/** The one place that decides who may do what. Refused unless a role gave the right. */
export function isAllowed(principal: Principal, right: Right, repository?: RepositoryName): boolean {
  if (!principal.rights.has(right)) return false
  if (repository === undefined || principal.mayReach === undefined) return true
  return principal.mayReach(repository)
}

/** Says no in the same words whether the repository exists or not. */
export function checkAllowed(principal: Principal, right: Right, repository?: RepositoryName): void {
  if (!isAllowed(principal, right, repository)) throw new RegistryRefusal('denied', { right })
}
