// The media types of manifests that the registry can parse.

export const dockerManifest = 'application/vnd.docker.distribution.manifest.v2+json'
export const dockerManifestList = 'application/vnd.docker.distribution.manifest.list.v2+json'
export const ociManifest = 'application/vnd.oci.image.manifest.v1+json'
export const ociIndex = 'application/vnd.oci.image.index.v1+json'

/** `image`: a config and layers. `index`: a list of manifests. */
export type ManifestShape = 'image' | 'index'

const shapes: ReadonlyMap<string, ManifestShape> = new Map([
  [dockerManifest, 'image'],
  [ociManifest, 'image'],
  [ociIndex, 'index'],
  [dockerManifestList, 'index'],
])

/** The three that are always accepted. `manifests.additional_media_types` can add others that have a shape. */
export const acceptedByDefault: readonly string[] = [dockerManifest, ociManifest, ociIndex]

export function shapeOf(mediaType: string): ManifestShape | undefined {
  return shapes.get(mediaType)
}

/** `Type/Sub; charset=utf-8` -> `type/sub`, to compare media types. */
export function withoutParameters(contentType: string): string {
  const end = contentType.indexOf(';')
  return (end === -1 ? contentType : contentType.slice(0, end)).trim().toLowerCase()
}
