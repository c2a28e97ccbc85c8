// The form of `docker save` and `docker load`: the config's bytes as they are, and plain layers.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { UnpackedImage } from '../support/clients/image-content.ts'
import { encodeJson, type Image, sha256 } from '../support/clients/oci-layout.ts'
import { makeTar } from '../support/clients/tar-file.ts'

export function makeDockerArchive(name: string, image: Image): Uint8Array {
  const configName = `${sha256(image.config).slice('sha256:'.length)}.json`
  const layers = image.layers.map((layer, index) => ({ name: `layer-${index + 1}/layer.tar`, content: layer.tar }))
  const manifest = [{ Config: configName, RepoTags: [name], Layers: layers.map((layer) => layer.name) }]
  return makeTar([
    { name: configName, content: image.config },
    ...layers,
    { name: 'manifest.json', content: encodeJson(manifest) },
  ])
}

/** Reads the only image of an archive that has been packed out. */
export function readDockerArchive(folder: string): UnpackedImage {
  const read = (name: string) => readFileSync(join(folder, name))
  const [image]: { Config: string; Layers: string[] }[] = JSON.parse(read('manifest.json').toString())
  if (image === undefined) throw new Error(`no image in the archive ${folder}`)
  return { config: sha256(read(image.Config)), diffIds: image.Layers.map((layer) => sha256(read(layer))) }
}

/** What an image must be after any client has packed it out. */
export function unpackedImage(image: Image): UnpackedImage {
  return { config: sha256(image.config), diffIds: image.layers.map((layer) => layer.diffId) }
}
