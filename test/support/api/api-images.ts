// Images, as small as they can be, and how they get into a registry.
import { createHash } from 'node:crypto'
import { dockerManifest, ociIndex, ociManifest } from '../../../src/oci/media-types.ts'
import type { ApiServer, Reply } from './api-server.ts'

export { dockerManifest, ociIndex, ociManifest }

export interface Descriptor {
  readonly mediaType: string
  readonly digest: string
  readonly size: number
}

export interface Manifest {
  readonly mediaType: string
  readonly bytes: string
  readonly digest: string
  readonly descriptor: Descriptor
}

export const configType = 'application/vnd.oci.image.config.v1+json'
export const layerType = 'application/vnd.oci.image.layer.v1.tar'

export function digestOf(content: string | Uint8Array, algorithm: 'sha256' | 'sha512' = 'sha256'): string {
  return `${algorithm}:${createHash(algorithm).update(content).digest('hex')}`
}

export function descriptorOf(content: string, mediaType: string): Descriptor {
  return { mediaType, digest: digestOf(content), size: Buffer.byteLength(content) }
}

export interface ImageParts {
  readonly mediaType?: string
  readonly config?: string
  readonly configMediaType?: string
  readonly layers?: readonly string[]
  readonly subject?: Descriptor
  readonly artifactType?: string
  readonly annotations?: Readonly<Record<string, string>>
}

export function imageOf(parts: ImageParts = {}): Manifest {
  const { mediaType = ociManifest, config = '{}', configMediaType = configType, layers = [], ...rest } = parts
  const layerTypes = layers.map((layer) => descriptorOf(layer, layerType))
  const body = {
    schemaVersion: 2,
    mediaType,
    config: descriptorOf(config, configMediaType),
    layers: layerTypes,
    ...rest,
  }
  return toManifest(mediaType, body)
}

export function indexOf(manifests: readonly Descriptor[], rest: Readonly<Record<string, unknown>> = {}): Manifest {
  return toManifest(ociIndex, { schemaVersion: 2, mediaType: ociIndex, manifests, ...rest })
}

function toManifest(mediaType: string, body: unknown): Manifest {
  const bytes = JSON.stringify(body)
  return { mediaType, bytes, digest: digestOf(bytes), descriptor: descriptorOf(bytes, mediaType) }
}

/** Uploads in one request; gives the digest. */
export async function pushBlob(server: ApiServer, repository: string, content: string): Promise<string> {
  const digest = digestOf(content)
  const path = `/v2/${repository}/blobs/uploads/?digest=${digest}`
  const headers = { 'content-type': 'application/octet-stream' }
  expectStatus(await server.ask('POST', path, { body: content, headers }), 201)
  return digest
}

export function putManifest(
  server: ApiServer,
  repository: string,
  reference: string,
  manifest: Manifest,
): Promise<Reply> {
  return server.ask('PUT', `/v2/${repository}/manifests/${reference}`, {
    body: manifest.bytes,
    headers: { 'content-type': manifest.mediaType },
  })
}

/** Uploads what the image is made of, then the manifest under the tag. */
export async function pushApiImage(
  server: ApiServer,
  repository: string,
  reference: string,
  parts: ImageParts = {},
): Promise<Manifest> {
  for (const content of [parts.config ?? '{}', ...(parts.layers ?? [])]) await pushBlob(server, repository, content)
  const image = imageOf(parts)
  expectStatus(await putManifest(server, repository, reference, image), 201)
  return image
}

/** Opens a session; gives its address. */
export async function startUpload(server: ApiServer, repository: string, mount = '/v2'): Promise<string> {
  const reply = await server.ask('POST', `${mount}/${repository}/blobs/uploads/`)
  expectStatus(reply, 202)
  return reply.headers.get('location') ?? ''
}

function expectStatus(reply: Reply, status: number): void {
  if (reply.status !== status) throw new Error(`expected ${status}, got ${reply.status}: ${reply.text}`)
}
