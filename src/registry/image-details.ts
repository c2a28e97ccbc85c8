import type { Digest } from '../oci/digest.ts'
import { isDigest } from '../oci/digest.ts'
import { RegistryRefusal } from '../oci/errors.ts'
import {
  type HistoryStep,
  type ImageConfig,
  type Layer,
  type PlatformEntry,
  readImageConfig,
  readManifestContent,
} from '../oci/image-content.ts'
import type { Tag } from '../oci/names.ts'
import type { BlobStore } from '../ports/blob-store.ts'
import type { ManifestNode } from '../ports/deletion-previews.ts'
import type { MetadataStore } from '../ports/metadata-store.ts'
import type { RepositoryKey, RepositoryRow } from '../ports/repositories.ts'
import { openBlob } from './blobs.ts'
import { getRepository } from './repositories.ts'

type Needs = {
  readonly metadata: Pick<MetadataStore, 'repositories' | 'manifests' | 'blobs' | 'deletionPreviews'>
  readonly blobs: Pick<BlobStore, 'open' | 'presignDownload'>
}

/** A manifest that refers to the image, and those that refer to it. */
export interface ReferrerNode {
  readonly digest: Digest
  readonly mediaType: string
  readonly artifactType: string | undefined
  readonly sizeBytes: number
  readonly referrers: readonly ReferrerNode[]
}

export interface ImageDetails {
  readonly node: ManifestNode
  readonly tags: readonly Tag[]
  /** Of the manifest, its config and its layers. Of an index: of its own manifest, and what it says of the others. */
  readonly totalBytes: number
  readonly platforms: readonly PlatformEntry[]
  readonly layers: readonly Layer[]
  /** Undefined if the image has no config of an image, or it is too large or missing. */
  readonly config: ImageConfig | undefined
  readonly history: readonly HistoryStep[]
  readonly referrers: readonly ReferrerNode[]
  /** Whether there are more tags or referrers than these. */
  readonly isCut: boolean
}

/** A config that is larger is not read. */
export const configBytesMax = 1024 * 1024
const tagsMax = 100
const referrersMax = 200
const depthMax = 4

/** What people want to see of one image. `reserve` is called before the config is read. */
export async function describeImage(
  needs: Needs,
  repositoryKey: RepositoryKey,
  digest: Digest,
  reserve: (bytes: number) => Promise<void>,
): Promise<ImageDetails> {
  const { metadata } = needs
  const repository = await getRepository(metadata, repositoryKey)
  const node = await metadata.deletionPreviews.findByDigest(repository, digest)
  if (node === undefined) throw new RegistryRefusal('manifest-unknown', { digest })
  await reserve(2 * node.sizeBytes)
  const manifest = await metadata.manifests.find(repositoryKey, { digest })
  if (manifest === undefined) throw new RegistryRefusal('manifest-unknown', { digest })
  const content = readManifestContent(manifest.bytes)
  const configBytes = await readConfig(needs, repositoryKey, content.config, reserve)
  const read = configBytes && readImageConfig(configBytes, content.layers)
  const tags = await metadata.deletionPreviews.listTagsOf(repository, node.id, tagsMax + 1)
  const tree = new ReferrerTree(needs, repository)
  const referrers = await tree.list(digest, 1)
  const parts = [...(content.config === undefined ? [] : [content.config]), ...content.layers, ...content.platforms]
  const distinct = new Map(parts.map((part) => [part.digest, part.sizeBytes]))
  return {
    node,
    tags: tags.slice(0, tagsMax),
    totalBytes: [...distinct.values()].reduce((sum, bytes) => sum + bytes, node.sizeBytes),
    platforms: content.platforms,
    layers: content.layers,
    config: read?.config,
    history: read?.history ?? [],
    referrers,
    isCut: tags.length > tagsMax || tree.isCut,
  }
}

async function readConfig(
  needs: Needs,
  repositoryKey: RepositoryKey,
  config: Layer | undefined,
  reserve: (bytes: number) => Promise<void>,
): Promise<Uint8Array | undefined> {
  if (config === undefined || !isDigest(config.digest) || !config.mediaType.endsWith('+json')) return undefined
  try {
    const blob = await openBlob(needs as Parameters<typeof openBlob>[0], repositoryKey, config.digest)
    if (blob.sizeBytes > configBytesMax) return undefined
    await reserve(2 * blob.sizeBytes)
    return await new Response(await blob.open()).bytes()
  } catch (error) {
    if (error instanceof RegistryRefusal && error.refusal === 'blob-unknown') return undefined
    throw error
  }
}

/** Referrers of referrers, bounded in number and depth. */
class ReferrerTree {
  readonly #needs: Needs
  readonly #repository: RepositoryRow
  readonly #seen = new Set<string>()
  isCut = false

  constructor(needs: Needs, repository: RepositoryRow) {
    this.#needs = needs
    this.#repository = repository
  }

  async list(subject: Digest, depth: number): Promise<ReferrerNode[]> {
    const limit = referrersMax + 1
    const found = await this.#needs.metadata.deletionPreviews.listReferrers(this.#repository, subject, limit)
    const nodes: ReferrerNode[] = []
    for (const { digest, mediaType, artifactType, sizeBytes } of found) {
      if (this.#seen.size >= referrersMax || depth > depthMax) {
        this.isCut = true
        break
      }
      this.#seen.add(digest)
      nodes.push({ digest, mediaType, artifactType, sizeBytes, referrers: await this.list(digest, depth + 1) })
    }
    return nodes
  }
}
