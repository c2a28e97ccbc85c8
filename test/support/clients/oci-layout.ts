// Unique images: created here, with real layers, and written as an OCI image layout.
import { createHash, randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeTar } from './tar-file.ts'

export const imageMediaTypes = {
  index: 'application/vnd.oci.image.index.v1+json',
  manifest: 'application/vnd.oci.image.manifest.v1+json',
  config: 'application/vnd.oci.image.config.v1+json',
  tarLayer: 'application/vnd.oci.image.layer.v1.tar',
  gzipLayer: 'application/vnd.oci.image.layer.v1.tar+gzip',
} as const

export interface Layer {
  readonly tar: Uint8Array
  /** The digest of the tar, as an image's config names it. */
  readonly diffId: string
  readonly gzip: Uint8Array
}

export interface Image {
  readonly platform: { readonly os: string; readonly architecture: string }
  readonly layers: readonly Layer[]
  readonly config: Uint8Array
}

interface Descriptor {
  readonly mediaType: string
  readonly digest: string
  readonly size: number
  readonly platform?: Image['platform']
  readonly annotations?: Readonly<Record<string, string>>
}

export function sha256(bytes: Uint8Array | string): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`
}

/** A layer of two files, one that compresses and one that does not. */
export function makeLayer(name: string, noiseBytes = 200_000): Layer {
  const readme = `${name} ${randomBytes(8).toString('hex')}\n`.repeat(500)
  const tar = makeTar([
    { name: `${name}.txt`, content: new TextEncoder().encode(readme) },
    { name: `${name}.noise`, content: randomBytes(noiseBytes) },
  ])
  return { tar, diffId: sha256(tar), gzip: Bun.gzipSync(new Uint8Array(tar)) }
}

export function makeImage(layerCount: number, architecture = 'amd64'): Image {
  const layers = Array.from({ length: layerCount }, (_, index) => makeLayer(`${architecture}-layer-${index + 1}`))
  const platform = { os: 'linux', architecture }
  return { platform, layers, config: encodeConfig(platform, layers) }
}

export function encodeConfig(platform: Image['platform'], layers: readonly Pick<Layer, 'diffId'>[]): Uint8Array {
  return encodeJson({
    ...platform,
    created: '2026-01-02T03:04:05Z',
    config: { Env: ['PATH=/bin'], Cmd: ['/bin/true'] },
    rootfs: { type: 'layers', diff_ids: layers.map((layer) => layer.diffId) },
    history: layers.map((_, index) => ({ created: '2026-01-02T03:04:05Z', created_by: `layer ${index + 1}` })),
  })
}

/** A folder in the form of the OCI image layout; every image that is added to it gets a tag. */
export class OciLayout {
  readonly folder: string

  constructor(folder: string) {
    this.folder = folder
    mkdirSync(join(folder, 'blobs', 'sha256'), { recursive: true })
    writeFileSync(join(folder, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}')
  }

  /** Gives the digest of the image's manifest. */
  addImage(tag: string, image: Image): string {
    const descriptor = this.writeImage(image)
    this.addTag(tag, descriptor)
    return descriptor.digest
  }

  /** One index over an image a platform; gives the digest of the index. */
  addIndex(tag: string, images: readonly Image[]): string {
    const manifests = images.map((image) => ({ ...this.writeImage(image), platform: image.platform }))
    const index = encodeJson({ schemaVersion: 2, mediaType: imageMediaTypes.index, manifests })
    const descriptor = this.addBlob(imageMediaTypes.index, index)
    this.addTag(tag, descriptor)
    return descriptor.digest
  }

  addManifest(config: Descriptor, layers: readonly Descriptor[]): Descriptor {
    const manifest = { schemaVersion: 2, mediaType: imageMediaTypes.manifest, config, layers }
    return this.addBlob(imageMediaTypes.manifest, encodeJson(manifest))
  }

  addBlob(mediaType: string, bytes: Uint8Array): Descriptor {
    const digest = sha256(bytes)
    writeFileSync(this.blobPath(digest), bytes)
    return { mediaType, digest, size: bytes.length }
  }

  addTag(tag: string, descriptor: Descriptor): void {
    const path = join(this.folder, 'index.json')
    const known: { manifests: Descriptor[] } = existsSync(path)
      ? JSON.parse(readFileSync(path, 'utf8'))
      : { manifests: [] }
    const tagged = { ...descriptor, annotations: { 'org.opencontainers.image.ref.name': tag } }
    writeFileSync(path, encodeJson({ schemaVersion: 2, manifests: [...known.manifests, tagged] }))
  }

  blobPath(digest: string): string {
    return join(this.folder, 'blobs', ...digest.split(':'))
  }

  private writeImage(image: Image): Descriptor {
    const layers = image.layers.map((layer) => this.addBlob(imageMediaTypes.gzipLayer, layer.gzip))
    return this.addManifest(this.addBlob(imageMediaTypes.config, image.config), layers)
  }
}

export function encodeJson(value: unknown): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value))
}
