import { isRepositoryName, type RepositoryName } from '../oci/names.ts'
import type { Right } from '../ports/identity.ts'

/** What a client wants a token for. */
export interface AskedScopes {
  readonly repositories: ReadonlyMap<RepositoryName, ReadonlySet<Right>>
  readonly catalog: boolean
}

const scopesMax = 64
const wholeScope = /^repository(?:\([a-z0-9]+\))?:(.+):([a-z,*]+)$/

const rightsByAction: Readonly<Record<string, readonly Right[]>> = {
  pull: ['pull'],
  push: ['push'],
  delete: ['delete'],
  '*': ['pull', 'push', 'delete'],
}

/**
 * `repository:<name>:<action>,<action>` and `registry:catalog:*`; each text may hold several with spaces between them. What
 * is not understood gives nothing, which is no fault: a token may always be for less than was asked.
 */
export function parseScopes(texts: readonly string[]): AskedScopes {
  const scopes = texts.flatMap((text) => text.split(' ')).filter((scope) => scope !== '')
  const repositories = new Map<RepositoryName, Set<Right>>()
  for (const scope of scopes.slice(0, scopesMax)) {
    const [, name = '', actions = ''] = wholeScope.exec(scope) ?? []
    if (!isRepositoryName(name)) continue
    const rights = repositories.get(name) ?? new Set()
    for (const action of actions.split(',')) for (const right of rightsByAction[action] ?? []) rights.add(right)
    repositories.set(name, rights)
  }
  return { repositories, catalog: scopes.includes('registry:catalog:*') }
}
