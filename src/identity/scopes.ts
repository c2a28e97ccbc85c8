import { isRepositoryName, type RepositoryName } from '../oci/names.ts'
import type { Right } from '../ports/identity.ts'

/** What a client requests a token for. */
export interface RequestedScopes {
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
 * Parses `repository:<name>:<action>,<action>` and `registry:catalog:*`. Each text may contain several, separated by
 * spaces. An unknown scope is ignored, because a token may have fewer rights than requested.
 */
export function parseScopes(texts: readonly string[]): RequestedScopes {
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
