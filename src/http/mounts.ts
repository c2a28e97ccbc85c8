import type { Digest } from '../oci/digest.ts'
import type { RepositoryName } from '../oci/names.ts'
import type { UploadId } from '../ports/uploads.ts'

export const apiPrefix = '/api/2023-12-28'
export const identityPrefix = '/api/2021-02-21'

/**
 * Below this path, the name of a repository comes first. `/-/` separates it from what follows: no part of a name is `-`, so
 * there is only one way to read such a path.
 */
export const repositoriesPath = `${apiPrefix}/repositories`

/**
 * The registry interface has two mounts: below the prefix of spec.md, and at the root, because most clients support
 * nothing else. Links in an answer stay in the mount of the request: Docker drops its credentials when a link leaves
 * it.
 */
export type RegistryMount = '/v2' | `${typeof apiPrefix}/v2`

/** The part of the interface that a path belongs to. It also decides the form of error bodies. */
export type Area = { readonly kind: 'registry'; readonly mount: RegistryMount } | { readonly kind: 'service' }

export const apiMount: RegistryMount = `${apiPrefix}/v2`
const service: Area = { kind: 'service' }
const atRoot: Area = { kind: 'registry', mount: '/v2' }
const underPrefix: Area = { kind: 'registry', mount: apiMount }

/** `/v2` without a slash means the same as `/v2/`. */
export function areaOf(path: string, hasRootMount: boolean): Area {
  if (hasRootMount && (path.startsWith('/v2/') || path === '/v2')) return atRoot
  if (path.startsWith(`${apiMount}/`) || path === apiMount) return underPrefix
  return service
}

// The values of `Location`: path-absolute, in the mount of the request, and built from parsed values only. They contain
// nothing of the URL or the headers of the request, so neither a key in the query nor a forged host can get into them.

export function blobLocation(mount: RegistryMount, repository: RepositoryName, digest: Digest): string {
  return `${mount}/${repository}/blobs/${digest}`
}

export function manifestLocation(mount: RegistryMount, repository: RepositoryName, reference: string): string {
  return `${mount}/${repository}/manifests/${reference}`
}

export function uploadLocation(mount: RegistryMount, repository: RepositoryName, id: UploadId): string {
  return `${mount}/${repository}/blobs/uploads/${id}`
}
