import type { Digest } from '../oci/digest.ts'
import type { RepositoryName } from '../oci/names.ts'
import type { UploadId } from '../ports/uploads.ts'
import type { RegistryMount } from './mounts.ts'

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
