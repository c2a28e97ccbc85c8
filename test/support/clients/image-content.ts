// The parts of an image with their hashes, read from a registry, a layout or a folder, so that two places can be compared.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { sha256 } from './oci-layout.ts'

export interface Part {
  readonly kind: 'index' | 'manifest' | 'config' | 'layer'
  readonly mediaType: string
  readonly sizeBytes: number
  /** Of the bytes that were really read. */
  readonly sha256: string
}

export interface ImageContent {
  /** The digest of what the tag points to. */
  readonly root: string
  /** Every part by the digest under which it was asked for. */
  readonly parts: ReadonlyMap<string, Part>
}

/** A place where images lie. */
export interface ImageSource {
  /** The bytes that a tag or a digest names. */
  readManifest(reference: string): Promise<Uint8Array>
  openBlob(digest: string): Promise<ReadableStream<Uint8Array>>
}

interface Manifest {
  readonly mediaType?: string
  readonly manifests?: readonly { readonly digest: string }[]
  readonly config?: { readonly digest: string; readonly mediaType: string }
  readonly layers?: readonly { readonly digest: string; readonly mediaType: string }[]
}

export function parseManifest(bytes: Uint8Array): Manifest {
  return JSON.parse(new TextDecoder().decode(bytes))
}

export async function readContent(source: ImageSource, reference: string): Promise<ImageContent> {
  const parts = new Map<string, Part>()
  const readBlob = async (kind: Part['kind'], digest: string, mediaType: string): Promise<void> => {
    parts.set(digest, { kind, mediaType, ...(await measure(await source.openBlob(digest))) })
  }
  const walk = async (wanted: string): Promise<string> => {
    const bytes = await source.readManifest(wanted)
    const { mediaType = '', manifests, config, layers = [] } = parseManifest(bytes)
    const digest = sha256(bytes)
    const kind = manifests === undefined ? 'manifest' : 'index'
    parts.set(wanted.includes(':') ? wanted : digest, { kind, mediaType, sizeBytes: bytes.length, sha256: digest })
    for (const child of manifests ?? []) await walk(child.digest)
    if (config !== undefined) await readBlob('config', config.digest, config.mediaType)
    for (const layer of layers) await readBlob('layer', layer.digest, layer.mediaType)
    return digest
  }
  return { root: await walk(reference), parts }
}

async function measure(stream: ReadableStream<Uint8Array>): Promise<Pick<Part, 'sizeBytes' | 'sha256'>> {
  const hash = createHash('sha256')
  let sizeBytes = 0
  for await (const chunk of stream) {
    hash.update(chunk)
    sizeBytes += chunk.length
  }
  return { sizeBytes, sha256: `sha256:${hash.digest('hex')}` }
}

/** Throws unless each part that was read is what its digest says. */
export function checkContent(content: ImageContent): void {
  for (const [digest, part] of content.parts) {
    if (part.sha256 !== digest) throw new Error(`the ${part.kind} ${digest} has bytes that hash to ${part.sha256}`)
  }
}

/** Throws unless both are the same image to the last byte, and each part is what its digest says. */
export function compareContent(expected: ImageContent, actual: ImageContent): void {
  checkContent(expected)
  checkContent(actual)
  const problems: string[] = []
  if (expected.root !== actual.root) problems.push(`the tag points to ${actual.root} instead of ${expected.root}`)
  for (const [digest, part] of actual.parts) {
    if (!expected.parts.has(digest)) problems.push(`the ${part.kind} ${digest} was not expected`)
  }
  for (const [digest, part] of expected.parts) {
    const found = actual.parts.get(digest)
    if (found === undefined) problems.push(`the ${part.kind} ${digest} is missing`)
    else if (!Bun.deepEquals(found, part)) problems.push(`the ${part.kind} ${digest} differs`)
  }
  if (expected.parts.size < 2) problems.push('the expected image has no content')
  if (problems.length > 0) throw new Error(`not the same image:\n  ${problems.join('\n  ')}`)
}

/** Digests of one image's config and of its layers once unpacked: they stay the same when a client compresses again. */
export interface UnpackedImage {
  readonly config: string
  readonly diffIds: readonly string[]
}

/** Reads a single image; its layers may be gzip or plain. */
export async function readUnpacked(source: ImageSource, reference: string): Promise<UnpackedImage> {
  const manifest = parseManifest(await source.readManifest(reference))
  if (manifest.config === undefined) throw new Error(`${reference} is not a single image`)
  const bytesOf = async (digest: string) =>
    new Uint8Array(await Bun.readableStreamToArrayBuffer(await source.openBlob(digest)))
  const diffIds: string[] = []
  for (const layer of manifest.layers ?? []) {
    const bytes = await bytesOf(layer.digest)
    diffIds.push(sha256(bytes[0] === 0x1f && bytes[1] === 0x8b ? Bun.gunzipSync(bytes) : bytes))
  }
  return { config: sha256(await bytesOf(manifest.config.digest)), diffIds }
}

/** A folder in the form of the OCI image layout. */
export function layoutSource(folder: string): ImageSource {
  const pathOf = (digest: string) => join(folder, 'blobs', ...digest.split(':'))
  return {
    async readManifest(reference) {
      if (reference.includes(':')) return readFileSync(pathOf(reference))
      const { manifests = [] }: { manifests?: { digest: string; annotations?: Record<string, string> }[] } = JSON.parse(
        readFileSync(join(folder, 'index.json'), 'utf8'),
      )
      const found = manifests.find((one) => one.annotations?.['org.opencontainers.image.ref.name'] === reference)
      if (found === undefined) throw new Error(`no '${reference}' in the layout ${folder}`)
      return readFileSync(pathOf(found.digest))
    },
    openBlob: async (digest) => Bun.file(pathOf(digest)).stream(),
  }
}

/** A folder in the form that skopeo calls `dir:`; the reference of its root does not matter. */
export function skopeoFolderSource(folder: string): ImageSource {
  const hexOf = (digest: string) => digest.replace(/^.*:/, '')
  return {
    async readManifest(reference) {
      const name = reference.includes(':') ? `${hexOf(reference)}.manifest.json` : 'manifest.json'
      return readFileSync(join(folder, name))
    },
    openBlob: async (digest) => Bun.file(join(folder, hexOf(digest))).stream(),
  }
}

/** A repository of a running registry, read by plain HTTP: the judge of what a client has pushed. */
export function registrySource(url: string, apiKey: string, repository: string): ImageSource {
  const ask = async (path: string): Promise<Response> => {
    const answer = await fetch(`${url}/v2/${repository}/${path}`, {
      headers: { authorization: `Basic ${btoa(`apikey:${apiKey}`)}` },
    })
    if (answer.status !== 200) throw new Error(`${repository}/${path}: ${answer.status} ${await answer.text()}`)
    return answer
  }
  return {
    readManifest: async (reference) => new Uint8Array(await (await ask(`manifests/${reference}`)).arrayBuffer()),
    async openBlob(digest) {
      const { body } = await ask(`blobs/${digest}`)
      if (body === null) throw new Error(`${digest} came without a body`)
      return body
    },
  }
}
