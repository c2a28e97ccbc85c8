/**
 * Where the registry interface answers: under the contract's prefix, and at the root, because most clients can speak
 * nothing else. A request's links stay in the mount it came in on: Docker drops its credentials when they leave it.
 */
export const apiPrefix = '/api/2023-12-28'
export const identityPrefix = '/api/2021-02-21'

export type RegistryMount = '/v2' | `${typeof apiPrefix}/v2`

/** Which part of the interface a path belongs to; it decides the form of an error's body too. */
export type Area = { readonly kind: 'registry'; readonly mount: RegistryMount } | { readonly kind: 'service' }

const apiMount: RegistryMount = `${apiPrefix}/v2`
const service: Area = { kind: 'service' }
const atRoot: Area = { kind: 'registry', mount: '/v2' }
const underPrefix: Area = { kind: 'registry', mount: apiMount }

/** `/v2` without a slash means the same as `/v2/`. */
export function areaOf(path: string, hasRootMount: boolean): Area {
  if (hasRootMount && (path.startsWith('/v2/') || path === '/v2')) return atRoot
  if (path.startsWith(`${apiMount}/`) || path === apiMount) return underPrefix
  return service
}
