// What people want to see of an image. Manifests and configs come from clients: every member may have any type.

export interface PlatformEntry {
  readonly digest: string
  readonly mediaType: string
  readonly sizeBytes: number
  readonly os: string | undefined
  readonly architecture: string | undefined
  readonly variant: string | undefined
  /** The entry holds attestations of this image of the index. BuildKit gives such entries the platform `unknown/unknown`. */
  readonly attests: string | undefined
}

export interface Layer {
  readonly digest: string
  readonly mediaType: string
  readonly sizeBytes: number
}

/** One step of the history. A step that adds no layer has no digest. */
export interface HistoryStep {
  readonly created: string | undefined
  readonly createdBy: string | undefined
  readonly comment: string | undefined
  readonly layer: Layer | undefined
}

export interface ImageConfig {
  readonly created: string | undefined
  readonly os: string | undefined
  readonly architecture: string | undefined
  readonly variant: string | undefined
  readonly user: string | undefined
  readonly workingDir: string | undefined
  readonly env: readonly string[]
  readonly entrypoint: readonly string[]
  readonly cmd: readonly string[]
  readonly exposedPorts: readonly string[]
  readonly labels: Readonly<Record<string, string>>
}

export interface ManifestContent {
  readonly config: Layer | undefined
  readonly layers: readonly Layer[]
  readonly platforms: readonly PlatformEntry[]
}

type JsonObject = Readonly<Record<string, unknown>>

/** Entries beyond this number are left out. */
const entriesMax = 1_000

/** Of the bytes of a stored manifest. */
export function readManifestContent(bytes: Uint8Array): ManifestContent {
  const body = parseObject(bytes)
  return {
    config: objectOf(body['config']) && toLayer(body['config']),
    layers: listOf(body['layers']).map(toLayer),
    platforms: listOf(body['manifests']).map(toPlatform),
  }
}

/** Undefined if the bytes are no config of an image. */
export function readImageConfig(
  bytes: Uint8Array,
  layers: readonly Layer[],
): { readonly config: ImageConfig; readonly history: readonly HistoryStep[] } | undefined {
  const body = parseObject(bytes)
  const run = objectOf(body['config']) ?? {}
  if (textOf(body['architecture']) === undefined && objectOf(body['rootfs']) === undefined) return undefined
  const config = {
    created: textOf(body['created']),
    os: textOf(body['os']),
    architecture: textOf(body['architecture']),
    variant: textOf(body['variant']),
    user: textOf(run['User']),
    workingDir: textOf(run['WorkingDir']),
    env: textsOf(run['Env']),
    entrypoint: textsOf(run['Entrypoint']),
    cmd: textsOf(run['Cmd']),
    exposedPorts: Object.keys(objectOf(run['ExposedPorts']) ?? {}).slice(0, entriesMax),
    labels: labelsOf(run['Labels']),
  }
  return { config, history: readHistory(listOf(body['history']), layers) }
}

/** Steps and layers are in the same order; a step with `empty_layer` has none. */
function readHistory(steps: readonly unknown[], layers: readonly Layer[]): HistoryStep[] {
  let next = 0
  return steps.map((one) => {
    const step = objectOf(one) ?? {}
    const isEmpty = step['empty_layer'] === true
    const layer = isEmpty ? undefined : layers[next]
    if (!isEmpty) next += 1
    return {
      created: textOf(step['created']),
      createdBy: textOf(step['created_by']),
      comment: textOf(step['comment']),
      layer,
    }
  })
}

function toLayer(value: unknown): Layer {
  const descriptor = objectOf(value) ?? {}
  return {
    digest: textOf(descriptor['digest']) ?? '',
    mediaType: textOf(descriptor['mediaType']) ?? '',
    sizeBytes: typeof descriptor['size'] === 'number' ? descriptor['size'] : 0,
  }
}

function toPlatform(value: unknown): PlatformEntry {
  const { platform, annotations } = objectOf(value) ?? {}
  const { os, architecture, variant } = objectOf(platform) ?? {}
  const notes = objectOf(annotations) ?? {}
  const isAttestation = notes['vnd.docker.reference.type'] === 'attestation-manifest'
  return {
    ...toLayer(value),
    os: isAttestation ? undefined : textOf(os),
    architecture: isAttestation ? undefined : textOf(architecture),
    variant: isAttestation ? undefined : textOf(variant),
    attests: isAttestation ? (textOf(notes['vnd.docker.reference.digest']) ?? '') : undefined,
  }
}

/** An empty object if the bytes are no JSON object. */
function parseObject(bytes: Uint8Array): JsonObject {
  try {
    return objectOf(JSON.parse(new TextDecoder().decode(bytes))) ?? {}
  } catch {
    return {}
  }
}

function objectOf(value: unknown): JsonObject | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value.slice(0, entriesMax) : []
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

function textsOf(value: unknown): string[] {
  return listOf(value).filter((one) => typeof one === 'string')
}

function labelsOf(value: unknown): Record<string, string> {
  const labels = Object.entries(objectOf(value) ?? {}).filter(([, text]) => typeof text === 'string')
  return Object.fromEntries(labels.slice(0, entriesMax)) as Record<string, string>
}
