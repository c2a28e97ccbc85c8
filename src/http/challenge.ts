import type { Refusal } from '../oci/errors.ts'
import type { Right } from '../ports/identity.ts'
import type { RegistryMount } from './mounts.ts'

/** What a request was about, as far as a token for it would have to be. */
export interface Asked {
  readonly right: Right
  /** Undefined for the catalog. */
  readonly repository: string | undefined
  /** The repository that a blob is to be mounted from. */
  readonly mountFrom: string | undefined
}

export function basicChallenge(serviceName: string): string {
  return `Basic realm="${serviceName}", charset="UTF-8"`
}

export interface TokenPlace {
  readonly origin: string
  readonly mount: RegistryMount
  readonly serviceName: string
}

/**
 * Where to fetch a token, and which. The address is absolute, because Docker takes no other, and in the mount of the
 * request.
 */
export function bearerChallenge(
  { origin, mount, serviceName }: TokenPlace,
  refusal: Refusal,
  asked: Asked | undefined,
): string {
  const scope = asked === undefined ? '' : toScope(asked)
  const parts = [`realm="${origin}${mount}/_token"`, `service="${serviceName}"`]
  if (scope !== '') parts.push(`scope="${scope}"`)
  if (refusal === 'scope-insufficient') parts.push('error="insufficient_scope"')
  if (refusal === 'credentials-invalid') parts.push('error="invalid_token"')
  return `Bearer ${parts.join(',')}`
}

const actions: Readonly<Record<Right, string>> = { pull: 'pull', push: 'pull,push', delete: 'delete', operate: '' }
const scopeName = /^[a-z0-9._\-/]{1,255}$/

/** Only names that can be quoted: what stands in a path may be anything. */
function toScope({ right, repository, mountFrom }: Asked): string {
  if (repository === undefined) return 'registry:catalog:*'
  if (!scopeName.test(repository)) return ''
  const own = `repository:${repository}:${actions[right]}`
  return mountFrom !== undefined && scopeName.test(mountFrom) ? `${own} repository:${mountFrom}:pull` : own
}
