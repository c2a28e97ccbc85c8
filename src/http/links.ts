import type { Digest } from '../oci/digest.ts'
import type { RepositoryName } from '../oci/names.ts'
import type { UploadId } from '../ports/uploads.ts'
import type { RegistryMount } from './mounts.ts'

/**
 * Every address that an answer names: path-absolute, in the mount of the request, and made of parsed values alone. No
 * part of the request's own address or headers gets in, so no key in a query and no forged host can.
 */
export function blobLocation(mount: RegistryMount, repository: RepositoryName, digest: Digest): string {
  return `${mount}/${repository}/blobs/${digest}`
}

export function manifestLocation(mount: RegistryMount, repository: RepositoryName, reference: string): string {
  return `${mount}/${repository}/manifests/${reference}`
}

export function uploadLocation(mount: RegistryMount, repository: RepositoryName, id: UploadId): string {
  return `${mount}/${repository}/blobs/uploads/${id}`
}

/** `Link: <...>; rel="next"`, as the distribution-spec asks for. */
export function nextPage(path: string, parameters: Readonly<Record<string, string | readonly string[]>>): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(parameters)) {
    for (const one of typeof value === 'string' ? [value] : value) query.append(name, one)
  }
  return `<${path}?${query}>; rel="next"`
}
