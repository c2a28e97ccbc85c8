// Pushes images to any registry, and transfers large blobs.
import { randomBytes } from './blob-source.ts'
import { curl } from './curl.ts'

export const repository = 'bench/app'
export const tag = 'latest'
export const manifestType = 'application/vnd.oci.image.manifest.v1+json'
const configType = 'application/vnd.oci.image.config.v1+json'
const layerType = 'application/vnd.oci.image.layer.v1.tar+gzip'

export interface Registry {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
}

export interface PushedContent {
  readonly digest: string
  readonly size: number
}

export interface Image {
  readonly config: PushedContent
  readonly layers: readonly PushedContent[]
  readonly annotations?: Readonly<Record<string, string>>
  readonly subject?: PushedContent & { readonly mediaType: string }
}

export type BlobPush = (
  registry: Registry,
  content: string | Uint8Array<ArrayBuffer>,
  into?: string,
) => Promise<PushedContent>

/** Small blobs, because only the manifest is read again. */
const usualConfig = JSON.stringify({ architecture: 'amd64', os: 'linux' })
const usualLayers = Array.from({ length: 8 }, (_, index) => `layer ${index}`)

/** The image that `pushImage` pushes. */
export const usualImage: Image = {
  config: describe(usualConfig),
  layers: usualLayers.map(describe),
}

export async function pushImage(registry: Registry): Promise<PushedContent> {
  for (const content of [usualConfig, ...usualLayers]) await pushBlob(registry, content)
  return pushManifest(registry, usualImage, tag)
}

export async function pushManifest(
  registry: Registry,
  { config, layers, ...rest }: Image,
  reference: string,
  into = repository,
): Promise<PushedContent> {
  const body = JSON.stringify({
    schemaVersion: 2,
    mediaType: manifestType,
    config: { mediaType: configType, ...config },
    layers: layers.map((layer) => ({ mediaType: layerType, ...layer })),
    ...rest,
  })
  const answer = await fetch(`${registry.url}/v2/${into}/manifests/${reference}`, {
    method: 'PUT',
    headers: { ...registry.headers, 'Content-Type': manifestType },
    body,
  })
  await expectStatus(answer, 201)
  return describe(body)
}

const blobsOfSmallImage = 3
const smallBlobBytes = 4096

/** New blobs of a small image, without its manifest. They are pushed at the same time, as clients do. */
export async function pushSmallBlobs(registry: Registry, into: string, push: BlobPush = pushBlob): Promise<Image> {
  const contents = Array.from({ length: blobsOfSmallImage }, () => randomBytes(smallBlobBytes))
  const [config, ...layers] = await Promise.all(contents.map((content) => push(registry, content, into)))
  if (config === undefined) throw new Error('an image has a config')
  return { config, layers }
}

export async function deleteManifest(registry: Registry, digest: string, from: string): Promise<void> {
  const url = `${registry.url}/v2/${from}/manifests/${digest}`
  await expectStatus(await fetch(url, { method: 'DELETE', headers: registry.headers }), 202)
}

/** Many tags of one manifest. */
export async function pushTags(registry: Registry, count: number): Promise<void> {
  for (let number = 0; number < count; number++) await pushManifest(registry, usualImage, `tag-${number}`)
}

/** POST to start, PUT with the content. */
export const pushBlob: BlobPush = async (registry, content, into = repository) => {
  const pushed = describe(content)
  await closeUpload(registry, await startUpload(registry, into), pushed.digest, content)
  return pushed
}

/** POST to start, PATCH with the content, an empty PUT to close, as Docker does. */
export const pushBlobByPatch: BlobPush = async (registry, content, into = repository) => {
  const pushed = describe(content)
  const answer = await fetch(await startUpload(registry, into), {
    method: 'PATCH',
    headers: { ...registry.headers, 'Content-Type': 'application/octet-stream' },
    body: content,
  })
  await expectStatus(answer, 202)
  await closeUpload(registry, locationOf(registry, answer), pushed.digest)
  return pushed
}

/** The same as `pushBlob`, with the content of a file. */
export async function uploadByPut(registry: Registry, path: string, digest: string): Promise<void> {
  await curl.upload('PUT', withDigest(await startUpload(registry), digest), registry.headers, path)
}

/** The same as `pushBlobByPatch`, with the content of a file. */
export async function uploadByPatch(registry: Registry, path: string, digest: string): Promise<void> {
  const location = await curl.upload('PATCH', await startUpload(registry), registry.headers, path)
  await closeUpload(registry, new URL(location, registry.url).href, digest)
}

async function startUpload(registry: Registry, into = repository): Promise<string> {
  const url = `${registry.url}/v2/${into}/blobs/uploads/`
  const answer = await fetch(url, { method: 'POST', headers: registry.headers })
  await expectStatus(answer, 202)
  return locationOf(registry, answer)
}

async function closeUpload(
  registry: Registry,
  location: string,
  digest: string,
  content: string | Uint8Array<ArrayBuffer> = '',
): Promise<void> {
  const headers = { ...registry.headers, 'Content-Type': 'application/octet-stream' }
  const answer = await fetch(withDigest(location, digest), { method: 'PUT', headers, body: content })
  await expectStatus(answer, 201)
}

function locationOf(registry: Registry, answer: Response): string {
  const location = answer.headers.get('Location')
  if (location === null) throw new Error(`${answer.url} answered without a Location`)
  return new URL(location, registry.url).href
}

/** Checks that the registry has the whole blob, so that no server gets a good figure without storing it. */
export async function expectBlob(registry: Registry, digest: string, sizeBytes: number): Promise<void> {
  const answer = await fetch(blobUrl(registry, digest), { method: 'HEAD', headers: registry.headers })
  await expectStatus(answer, 200)
  const length = answer.headers.get('Content-Length')
  if (length !== `${sizeBytes}`) throw new Error(`${answer.url}: ${length} bytes instead of ${sizeBytes}`)
}

export function blobUrl(registry: Registry, digest: string): string {
  return `${registry.url}/v2/${repository}/blobs/${digest}`
}

export function manifestUrl(registry: Registry, reference: string): string {
  return `${registry.url}/v2/${repository}/manifests/${reference}`
}

function withDigest(location: string, digest: string): string {
  const url = new URL(location)
  url.searchParams.set('digest', digest)
  return url.href
}

function describe(content: string | Uint8Array): PushedContent {
  return { digest: sha256(content), size: Buffer.byteLength(content) }
}

export function sha256(content: string | Uint8Array): string {
  return `sha256:${new Bun.CryptoHasher('sha256').update(content).digest('hex')}`
}

async function expectStatus(answer: Response, status: number): Promise<void> {
  const text = await answer.text()
  if (answer.status !== status) throw new Error(`${answer.url}: ${answer.status} instead of ${status}: ${text}`)
}
