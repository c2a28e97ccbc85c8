// What a data set of the official suite consists of: blobs, manifests with children first, tags, and the referrers.
import { digestOf, generatedBytes } from '../support/basics/generated-bytes.ts'

export type Algorithm = 'sha256' | 'sha512'

export interface Content {
  readonly digest: string
  readonly bytes: Uint8Array<ArrayBuffer>
}

export interface Descriptor {
  readonly mediaType: string
  readonly digest: string
  readonly size: number
  readonly urls?: readonly string[]
  readonly data?: string
  readonly platform?: { readonly os: string; readonly architecture: string }
}

export interface Manifest extends Content {
  readonly mediaType: string
  /** The digest of the subject. */
  readonly subject?: string
}

/** An entry of the referrers list, with all of its members. */
export interface Referrer extends Descriptor {
  readonly artifactType?: string
  readonly annotations?: Readonly<Record<string, string>>
}

interface ManifestOptions {
  readonly artifactType?: string
  readonly annotations?: Readonly<Record<string, string>>
  readonly subject?: Descriptor
  readonly tag?: string
}

export interface DataSetOptions {
  readonly algorithm?: Algorithm
  /** Repeats the content in the member `data` of each descriptor. */
  readonly isDataEmbedded?: true
  /** Puts a member that no specification knows into configs and manifests. */
  readonly hasCustomFields?: true
}

export const mediaTypes = {
  image: 'application/vnd.oci.image.manifest.v1+json',
  index: 'application/vnd.oci.image.index.v1+json',
  config: 'application/vnd.oci.image.config.v1+json',
  layer: 'application/vnd.oci.image.layer.v1.tar',
  gzipLayer: 'application/vnd.oci.image.layer.v1.tar+gzip',
  foreignLayer: 'application/vnd.oci.image.layer.nondistributable.v1.tar',
  empty: 'application/vnd.oci.empty.v1+json',
  exampleOne: 'application/vnd.example.berth.conformance.one',
  exampleTwo: 'application/vnd.example.berth.conformance.two',
} as const

export const platforms = ['amd64', 'arm64'].map((architecture) => ({ os: 'linux', architecture }))

let seed = 0

/** Bytes that no other call returns. */
export function freshBytes(sizeBytes: number): Uint8Array<ArrayBuffer> {
  seed += 1
  return generatedBytes(sizeBytes, seed)
}

export function contentOf(bytes: Uint8Array<ArrayBuffer>, algorithm: Algorithm = 'sha256'): Content {
  return { digest: digestOf(bytes, algorithm), bytes }
}

const textBytes = (text: string) => new TextEncoder().encode(text)

export class DataSet {
  readonly blobs = new Map<string, Content>()
  /** In the order in which they can be pushed. */
  readonly manifests: Manifest[] = []
  /** The digests that tags point to. */
  readonly tags = new Map<string, string>()
  /** By the digest of the subject. */
  readonly referrers = new Map<string, Referrer[]>()
  readonly #options: DataSetOptions

  constructor(options: DataSetOptions = {}) {
    this.#options = options
  }

  addBlob(mediaType: string, bytes: Uint8Array<ArrayBuffer> = freshBytes(2048)): Descriptor {
    const descriptor = this.describe(mediaType, bytes)
    this.blobs.set(descriptor.digest, { digest: descriptor.digest, bytes })
    return descriptor
  }

  /** A descriptor of content that is not part of the set. */
  describe(mediaType: string, bytes: Uint8Array<ArrayBuffer> = freshBytes(1024)): Descriptor {
    const { digest } = contentOf(bytes, this.#options.algorithm)
    const data = this.#options.isDataEmbedded && { data: Buffer.from(bytes).toString('base64') }
    return { mediaType, digest, size: bytes.length, ...data }
  }

  /** An image with a config of its own, and with two layers unless others are given. */
  addImage({ layers, ...options }: ManifestOptions & { readonly layers?: readonly Descriptor[] } = {}): Descriptor {
    // The registry never reads a config, so it only has to be different each time.
    const config = textBytes(JSON.stringify(this.#withCustomField({ author: crypto.randomUUID() })))
    const content = {
      config: this.addBlob(mediaTypes.config, config),
      layers: layers ?? [this.addBlob(mediaTypes.gzipLayer), this.addBlob(mediaTypes.gzipLayer)],
    }
    return this.#addManifest(mediaTypes.image, content, options, options.artifactType ?? mediaTypes.config)
  }

  /** An image manifest whose config is the empty descriptor, as the image-spec defines an artifact. */
  addArtifact(artifactType: string, layer: Descriptor, options: ManifestOptions = {}): Descriptor {
    const content = { config: this.addBlob(mediaTypes.empty, textBytes('{}')), layers: [layer] }
    return this.#addManifest(mediaTypes.image, content, { ...options, artifactType }, artifactType)
  }

  addIndex(manifests: readonly Descriptor[], options: ManifestOptions = {}): Descriptor {
    return this.#addManifest(mediaTypes.index, { manifests }, options, options.artifactType)
  }

  /** An index of one image for each of two platforms. */
  addPlatformIndex(options: ManifestOptions = {}): Descriptor {
    const images = platforms.map((platform) => ({ ...this.addImage(), platform }))
    return this.addIndex(images, options)
  }

  #addManifest(
    mediaType: string,
    content: object,
    { artifactType, annotations, subject, tag }: ManifestOptions,
    listedType: string | undefined,
  ): Descriptor {
    const body = { schemaVersion: 2, mediaType, artifactType, ...content, subject, annotations }
    const bytes = textBytes(JSON.stringify(this.#withCustomField(body)))
    const descriptor = { mediaType, digest: contentOf(bytes, this.#options.algorithm).digest, size: bytes.length }
    this.manifests.push({ ...descriptor, bytes, ...(subject && { subject: subject.digest }) })
    if (tag !== undefined) this.tags.set(tag, descriptor.digest)
    if (subject !== undefined) {
      const referrer = {
        ...descriptor,
        ...(listedType && { artifactType: listedType }),
        ...(annotations && { annotations }),
      }
      this.referrers.set(subject.digest, [...(this.referrers.get(subject.digest) ?? []), referrer])
    }
    return descriptor
  }

  #withCustomField(body: object): object {
    return this.#options.hasCustomFields ? { ...body, 'org.example.custom': crypto.randomUUID() } : body
  }
}
