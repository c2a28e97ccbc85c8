// Pushes an image to any registry, and transfers one big blob.
import { curl } from './curl.ts'

export const repository = 'bench/app'
export const tag = 'latest'
export const manifestType = 'application/vnd.oci.image.manifest.v1+json'

export interface Registry {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
}

export interface PushedManifest {
  readonly digest: string
  readonly sizeBytes: number
}

/** A usual image: a config and eight layers. They are small, because only the manifest is read again. */
export async function pushImage(registry: Registry): Promise<PushedManifest> {
  const config = await pushSmallBlob(registry, JSON.stringify({ architecture: 'amd64', os: 'linux' }))
  const layers = await Promise.all(Array.from({ length: 8 }, (_, index) => pushSmallBlob(registry, `layer ${index}`)))
  const body = JSON.stringify({
    schemaVersion: 2,
    mediaType: manifestType,
    config: { mediaType: 'application/vnd.oci.image.config.v1+json', ...config },
    layers: layers.map((layer) => ({ mediaType: 'application/vnd.oci.image.layer.v1.tar+gzip', ...layer })),
  })
  const answer = await fetch(`${registry.url}/v2/${repository}/manifests/${tag}`, {
    method: 'PUT',
    headers: { ...registry.headers, 'Content-Type': manifestType },
    body,
  })
  await expectStatus(answer, 201)
  return { digest: sha256(body), sizeBytes: body.length }
}

async function pushSmallBlob(registry: Registry, content: string) {
  const digest = sha256(content)
  const answer = await fetch(withDigest(await startUpload(registry), digest), {
    method: 'PUT',
    headers: { ...registry.headers, 'Content-Type': 'application/octet-stream' },
    body: content,
  })
  await expectStatus(answer, 201)
  return { digest, size: content.length }
}

/** POST to start, then the whole blob with one PUT. */
export async function uploadByPut(registry: Registry, path: string, digest: string): Promise<void> {
  await curl.upload('PUT', withDigest(await startUpload(registry), digest), registry.headers, path)
}

/** POST to start, PATCH with the content, an empty PUT to close, as Docker does. */
export async function uploadByPatch(registry: Registry, path: string, digest: string): Promise<void> {
  const location = await curl.upload('PATCH', await startUpload(registry), registry.headers, path)
  const close = withDigest(new URL(location, registry.url).href, digest)
  await expectStatus(await fetch(close, { method: 'PUT', headers: registry.headers }), 201)
}

async function startUpload(registry: Registry): Promise<string> {
  const url = `${registry.url}/v2/${repository}/blobs/uploads/`
  const answer = await fetch(url, { method: 'POST', headers: registry.headers })
  await expectStatus(answer, 202)
  const location = answer.headers.get('Location')
  if (location === null) throw new Error(`${url} answered without a Location`)
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

export function sha256(content: string): string {
  return `sha256:${new Bun.CryptoHasher('sha256').update(content).digest('hex')}`
}

async function expectStatus(answer: Response, status: number): Promise<void> {
  const text = await answer.text()
  if (answer.status !== status) throw new Error(`${answer.url}: ${answer.status} instead of ${status}: ${text}`)
}
