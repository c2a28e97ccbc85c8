// Older multi-arch images, as they still lie in many registries: a docker manifest list over docker manifests, written
// in the form that skopeo calls `dir:`.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { encodeJson, type Image, sha256 } from '../support/clients/oci-layout.ts'

export const dockerTypes = {
  list: 'application/vnd.docker.distribution.manifest.list.v2+json',
  manifest: 'application/vnd.docker.distribution.manifest.v2+json',
  config: 'application/vnd.docker.container.image.v1+json',
  layer: 'application/vnd.docker.image.rootfs.diff.tar.gzip',
} as const

export function writeDockerListFolder(folder: string, images: readonly Image[]): void {
  mkdirSync(folder)
  const write = (mediaType: string, bytes: Uint8Array, suffix = '') => {
    const digest = sha256(bytes)
    writeFileSync(join(folder, digest.slice('sha256:'.length) + suffix), bytes)
    return { mediaType, size: bytes.length, digest }
  }
  const manifests = images.map((image) => {
    const config = write(dockerTypes.config, image.config)
    const layers = image.layers.map((layer) => write(dockerTypes.layer, layer.gzip))
    const manifest = encodeJson({ schemaVersion: 2, mediaType: dockerTypes.manifest, config, layers })
    return { ...write(dockerTypes.manifest, manifest, '.manifest.json'), platform: image.platform }
  })
  writeFileSync(join(folder, 'version'), 'Directory Transport Version: 1.1\n')
  writeFileSync(join(folder, 'manifest.json'), encodeJson({ schemaVersion: 2, mediaType: dockerTypes.list, manifests }))
}
