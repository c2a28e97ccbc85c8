import { isWellFormedDigest, type WellFormedDigest } from './digest.ts'
import { RegistryRefusal } from './errors.ts'
import { findJsonFault, foldKey } from './json-scan.ts'
import { type ManifestShape, shapeOf } from './media-types.ts'

/** The members of a descriptor that the registry uses. */
export interface Descriptor {
  readonly digest: WellFormedDigest
  readonly sizeBytes: number
  readonly mediaType: string
  /** The content is fetched from elsewhere (`urls`), so it may be absent here. */
  readonly isForeign: boolean
}

/** A manifest that has passed all checks of its own bytes. */
export interface Manifest {
  readonly mediaType: string
  readonly shape: ManifestShape
  /** The config and the layers of an image; none for an index. */
  readonly blobs: readonly Descriptor[]
  /** The entries of an index; none for an image. */
  readonly children: readonly Descriptor[]
  readonly subject: WellFormedDigest | undefined
  /** As in the referrers list: the manifest's own type, or else, for an image, the media type of its config. */
  readonly artifactType: string | undefined
  readonly annotations: Readonly<Record<string, string>> | undefined
}

export interface ManifestLimits {
  readonly jsonDepthMax: number
  readonly descriptorsMax: number
  readonly annotationsMax: number
  /** For a manifest with a subject, because the referrers list repeats its annotations. */
  readonly annotationBytesMax: number
}

type JsonObject = Readonly<Record<string, unknown>>

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** `mediaType`: the content type of the request. Refuses bytes that are no valid manifest of this type. */
export function parseManifest(bytes: Uint8Array, mediaType: string, limits: ManifestLimits): Manifest {
  const shape = shapeOf(mediaType)
  if (shape === undefined) throw new RegistryRefusal('manifest-type-unsupported', { mediaType })
  const body = parseJsonObject(bytes, limits.jsonDepthMax)
  checkSpelling(body, manifestFields, '')

  if (body['schemaVersion'] !== 2) throw invalid('schemaVersion must be 2')
  const ownType = body['mediaType']
  // One document must not be an index for one client and an image for another (CVE-2021-41190).
  if (isPresent(ownType) && ownType !== mediaType) throw invalid('mediaType differs from the content type')
  const otherFields = shape === 'image' ? ['manifests', 'fsLayers'] : ['config', 'layers', 'fsLayers']
  for (const field of otherFields) {
    if (isPresent(body[field])) throw invalid(`a manifest of type ${mediaType} has no field ${field}`)
  }

  const config = shape === 'image' ? descriptor(body['config'], 'config') : undefined
  const layers = shape === 'image' ? descriptors(body['layers'], 'layers', limits) : []
  const children = shape === 'index' ? descriptors(body['manifests'], 'manifests', limits) : []
  const subject = isPresent(body['subject']) ? descriptor(body['subject'], 'subject') : undefined
  const ownArtifactType = optionalString(body['artifactType'], 'artifactType')
  return {
    mediaType,
    shape,
    blobs: config === undefined ? [] : [config, ...layers],
    children,
    subject: subject?.digest,
    artifactType: ownArtifactType || config?.mediaType || undefined,
    annotations: annotations(
      body['annotations'],
      subject === undefined ? undefined : limits.annotationBytesMax,
      limits,
    ),
  }
}

function invalid(reason: string): RegistryRefusal {
  return new RegistryRefusal('manifest-invalid', { reason })
}

function parseJsonObject(bytes: Uint8Array, depthMax: number): JsonObject {
  let text: string
  try {
    text = utf8.decode(bytes)
  } catch {
    throw invalid('not UTF-8')
  }
  const fault = findJsonFault(text, depthMax)
  if (fault?.kind === 'duplicate key') throw invalid(`duplicate key ${JSON.stringify(fault.key.slice(0, 64))}`)
  if (fault !== undefined) throw invalid(fault.kind)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw invalid('not JSON')
  }
  if (!isObject(value)) throw invalid('not a JSON object')
  return value
}

/** Encoders in Go may write an absent field as null. */
function isPresent(value: unknown): boolean {
  return value !== undefined && value !== null
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function descriptors(value: unknown, field: string, limits: ManifestLimits): Descriptor[] {
  if (value === null) return []
  if (!Array.isArray(value)) throw invalid(`${field} must be an array`)
  if (value.length > limits.descriptorsMax) throw invalid(`${field} has more than ${limits.descriptorsMax} entries`)
  return value.map((entry: unknown, index) => descriptor(entry, `${field}[${index}]`))
}

const manifestFields = foldedNames([
  'schemaVersion',
  'mediaType',
  'config',
  'layers',
  'manifests',
  'fsLayers',
  'subject',
  'artifactType',
  'annotations',
])
const descriptorFields = foldedNames(['mediaType', 'digest', 'size', 'urls'])

/** Folded name -> the name as it must be written. */
function foldedNames(names: readonly string[]): ReadonlyMap<string, string> {
  return new Map(names.map((name) => [foldKey(name), name]))
}

/** For a client in Go, `Manifests` is the field `manifests`. So such names are refused. */
function checkSpelling(value: JsonObject, fields: ReadonlyMap<string, string>, place: string): void {
  for (const key of Object.keys(value)) {
    const correct = fields.get(foldKey(key))
    if (correct !== undefined && correct !== key)
      throw invalid(`${place}${key.slice(0, 32)} must be spelled ${correct}`)
  }
}

/** image-spec, "Content Descriptors": mediaType, digest and size are REQUIRED; size is not negative. */
function descriptor(value: unknown, field: string): Descriptor {
  if (!isObject(value)) throw invalid(`${field} must be a descriptor`)
  checkSpelling(value, descriptorFields, `${field}.`)
  const { digest, size, mediaType, urls } = value
  if (typeof digest !== 'string' || !isWellFormedDigest(digest)) throw invalid(`${field}.digest is not a digest`)
  if (typeof size !== 'number' || !Number.isSafeInteger(size) || size < 0) throw invalid(`${field}.size is not a size`)
  if (typeof mediaType !== 'string' || mediaType === '') throw invalid(`${field}.mediaType is missing`)
  checkType(mediaType, `${field}.mediaType`)
  return { digest, sizeBytes: size, mediaType, isForeign: Array.isArray(urls) && urls.length > 0 }
}

function optionalString(value: unknown, field: string): string | undefined {
  if (!isPresent(value)) return undefined
  if (typeof value !== 'string') throw invalid(`${field} must be a string`)
  checkType(value, field)
  return value
}

const typeLengthMax = 1_024

/** PostgreSQL refuses text with NUL. RFC 6838 allows types of at most 255 characters, without parameters. */
function checkType(type: string, field: string): void {
  if (type.includes('\0')) throw invalid(`${field} has a NUL in it`)
  if (type.length > typeLengthMax) {
    throw invalid(`${field} has ${type.length} characters; at most ${typeLengthMax} are accepted`)
  }
}

function annotations(
  value: unknown,
  bytesMax: number | undefined,
  { annotationsMax }: ManifestLimits,
): Readonly<Record<string, string>> | undefined {
  if (!isPresent(value)) return undefined
  if (!isObject(value)) throw invalid('annotations must be an object')
  const entries = Object.entries(value)
  if (entries.length > annotationsMax) {
    throw invalid(`the manifest has ${entries.length} annotations; at most ${annotationsMax} are accepted`)
  }
  for (const [key, text] of entries) {
    if (typeof text !== 'string') throw invalid(`annotation ${key.slice(0, 255)} must be a string`)
  }
  const bytes = bytesMax === undefined ? 0 : Buffer.byteLength(JSON.stringify(value))
  if (bytesMax !== undefined && bytes > bytesMax) {
    throw invalid(`the annotations have ${bytes} bytes; at most ${bytesMax} are accepted in a manifest with a subject`)
  }
  return value as Readonly<Record<string, string>>
}
