// Bodies of manifests, right and wrong, for tests that need no registry.
import { type Manifest, type ManifestLimits, parseManifest } from '../../../src/oci/manifest.ts'

export const limits: ManifestLimits = {
  jsonDepthMax: 32,
  descriptorsMax: 10_000,
  annotationsMax: 1_000,
  annotationBytesMax: 262_144,
}

export type Body = Readonly<Record<string, unknown>>

export function descriptor(digit = '0', rest: Body = {}): Body {
  return { mediaType: 'application/x', digest: `sha256:${digit.repeat(64)}`, size: 1, ...rest }
}

export function imageBody(rest: Body = {}): Body {
  return { schemaVersion: 2, config: descriptor('c'), layers: [descriptor('a'), descriptor('b')], ...rest }
}

export function indexBody(rest: Body = {}): Body {
  return { schemaVersion: 2, manifests: [descriptor('d')], ...rest }
}

export function toBytes(body: unknown): Uint8Array {
  return new TextEncoder().encode(typeof body === 'string' ? body : JSON.stringify(body))
}

export function parse(body: unknown, mediaType: string, own: Partial<ManifestLimits> = {}): Manifest {
  return parseManifest(toBytes(body), mediaType, { ...limits, ...own })
}
