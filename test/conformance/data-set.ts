// Builds what a data set consists of: blobs, manifests with children first, tags, and what the referrers list must say.
import { type Algorithm, type Content, digestOf, layerTar, mediaTypes, noise, textBytes } from './content.ts'

export interface Platform {
  readonly os: string
  readonly architecture: string
}

export interface Descriptor {
  readonly mediaType: string
  readonly digest: string
  readonly size: number
  readonly urls?: readonly string[]
  readonly data?: string
  readonly platform?: Platform
}

export interface Manifest extends Content {
  readonly mediaType: string
  /** The digest of what it refers to. */
  readonly subject?: string
}

/** An entry of the referrers list, every member of it. */
export interface Referrer {
  readonly mediaType: string
  readonly digest: string
  readonly size: number
  readonly artifactType?: string
  readonly annotations?: Readonly<Record<string, string>>
}

export interface DataSet {
  readonly blobs: readonly Content[]
  /** In the order in which they can be pushed. */
  readonly manifests: readonly Manifest[]
  /** The digests that tags point to. */
  readonly tags: ReadonlyMap<string, string>
  /** By the digest of the subject. */
  readonly referrers: ReadonlyMap<string, readonly Referrer[]>
}

/** What image manifests and indexes have in common. */
export interface ManifestOptions {
  readonly artifactType?: string
  readonly annotations?: Readonly<Record<string, string>>
  readonly subject?: Descriptor
  readonly tag?: string
}

export interface ImageOptions extends ManifestOptions {
  readonly layers?: readonly Descriptor[]
  readonly platform?: Platform
}

export interface ArtifactOptions extends ManifestOptions {
  readonly artifactType: string
  readonly layer: Descriptor
}

export interface BuilderOptions {
  readonly algorithm?: Algorithm
  /** Repeat the content in each descriptor's `data`. */
  readonly isDataEmbedded?: boolean
  /** Put a member that no specification knows into configs and manifests. */
  readonly hasCustomFields?: boolean
}

export const amd64: Platform = { os: 'linux', architecture: 'amd64' }
export const arm64: Platform = { os: 'linux', architecture: 'arm64' }

export class DataSetBuilder {
  readonly #seed: string
  readonly #options: BuilderOptions
  readonly #blobs = new Map<string, Content>()
  readonly #manifests: Manifest[] = []
  readonly #tags = new Map<string, string>()
  readonly #referrers = new Map<string, Referrer[]>()
  #counter = 0

  constructor(seed: string, options: BuilderOptions = {}) {
    this.#seed = seed
    this.#options = options
  }

  build(): DataSet {
    return {
      blobs: [...this.#blobs.values()],
      manifests: this.#manifests,
      tags: this.#tags,
      referrers: this.#referrers,
    }
  }

  addBlob(mediaType: string, bytes: Uint8Array): Descriptor {
    const descriptor = this.describe(mediaType, bytes)
    this.#blobs.set(descriptor.digest, { digest: descriptor.digest, bytes })
    return descriptor
  }

  /** A descriptor of content that is not part of the set. */
  describe(mediaType: string, bytes: Uint8Array): Descriptor {
    const descriptor = { mediaType, digest: digestOf(bytes, this.#options.algorithm), size: bytes.length }
    if (this.#options.isDataEmbedded !== true) return descriptor
    return { ...descriptor, data: Buffer.from(bytes).toString('base64') }
  }

  addLayer(isCompressed = true): Descriptor {
    const tar = layerTar(this.nextSeed())
    if (!isCompressed) return this.addBlob(mediaTypes.layer, tar)
    return this.addBlob(mediaTypes.gzipLayer, Bun.gzipSync(new Uint8Array(tar)))
  }

  addNoise(mediaType: string, sizeBytes = 2048): Descriptor {
    return this.addBlob(mediaType, noise(this.nextSeed(), sizeBytes))
  }

  /** An image with a config of its own and two layers unless it is told which. */
  addImage({
    layers = [this.addLayer(), this.addLayer()],
    platform = amd64,
    ...options
  }: ImageOptions = {}): Descriptor {
    // The registry never opens a config, so it need not be true of the layers; it must only be different every time.
    const rootfs = { type: 'layers', diff_ids: layers.map(({ digest }) => digest) }
    const config = this.#withCustomField({ author: this.nextSeed(), ...platform, rootfs })
    return this.#addImageManifest(this.addBlob(mediaTypes.config, textBytes(JSON.stringify(config))), layers, options)
  }

  /** An image manifest whose config is the empty descriptor, as the image-spec wants of an artifact. */
  addArtifact({ layer, ...options }: ArtifactOptions): Descriptor {
    return this.#addImageManifest(this.addBlob(mediaTypes.empty, textBytes('{}')), [layer], options)
  }

  addIndex(manifests: readonly Descriptor[], options: ManifestOptions = {}): Descriptor {
    return this.#addManifest(mediaTypes.index, { manifests }, options, options.artifactType)
  }

  /** An index of one image for each of two platforms. */
  addPlatformIndex(options: ManifestOptions = {}): Descriptor {
    const images = [amd64, arm64].map((platform) => ({ ...this.addImage({ platform }), platform }))
    return this.addIndex(images, options)
  }

  /** One more name for a manifest. */
  addTag(tag: string, digest: string): void {
    this.#tags.set(tag, digest)
  }

  nextSeed(): string {
    this.#counter += 1
    return `${this.#seed} ${this.#counter}`
  }

  #addImageManifest(config: Descriptor, layers: readonly Descriptor[], options: ManifestOptions): Descriptor {
    const derivedType = options.artifactType ?? config.mediaType
    return this.#addManifest(mediaTypes.image, { config, layers }, options, derivedType)
  }

  #addManifest(
    mediaType: string,
    content: Readonly<Record<string, unknown>>,
    { artifactType, annotations, subject, tag }: ManifestOptions,
    listedType: string | undefined,
  ): Descriptor {
    const body = { schemaVersion: 2, mediaType, artifactType, ...content, subject, annotations }
    const bytes = textBytes(JSON.stringify(this.#withCustomField(body)))
    const { digest, size } = this.describe(mediaType, bytes)
    this.#manifests.push({ digest, mediaType, bytes, ...(subject && { subject: subject.digest }) })
    if (tag !== undefined) this.addTag(tag, digest)
    if (subject !== undefined) {
      const referrer = {
        mediaType,
        digest,
        size,
        ...(listedType && { artifactType: listedType }),
        ...(annotations && { annotations }),
      }
      this.#referrers.set(subject.digest, [...(this.#referrers.get(subject.digest) ?? []), referrer])
    }
    return { mediaType, digest, size }
  }

  #withCustomField(body: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
    return this.#options.hasCustomFields === true
      ? { ...body, [`org.example.${this.nextSeed()}`]: this.nextSeed() }
      : body
  }
}
