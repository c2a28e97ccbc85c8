// Bytes to push: the same in every run, and different for every seed.
import { makeTar } from '../support/clients/tar-file.ts'

export const algorithms = ['sha256', 'sha512'] as const
export type Algorithm = (typeof algorithms)[number]

export const mediaTypes = {
  octets: 'application/octet-stream',
  image: 'application/vnd.oci.image.manifest.v1+json',
  index: 'application/vnd.oci.image.index.v1+json',
  config: 'application/vnd.oci.image.config.v1+json',
  layer: 'application/vnd.oci.image.layer.v1.tar',
  gzipLayer: 'application/vnd.oci.image.layer.v1.tar+gzip',
  foreignLayer: 'application/vnd.oci.image.layer.nondistributable.v1.tar',
  foreignGzipLayer: 'application/vnd.oci.image.layer.nondistributable.v1.tar+gzip',
  empty: 'application/vnd.oci.empty.v1+json',
  exampleOne: 'application/vnd.example.berth.conformance.one',
  exampleTwo: 'application/vnd.example.berth.conformance.two',
} as const

export interface Content {
  readonly digest: string
  readonly bytes: Uint8Array
}

export function digestOf(bytes: Uint8Array, algorithm: Algorithm = 'sha256'): string {
  return `${algorithm}:${Bun.CryptoHasher.hash(algorithm, bytes, 'hex')}`
}

export function textBytes(text: string): Uint8Array {
  return new TextEncoder().encode(text)
}

/** Noise that does not compress: the hashes of a counter. */
export function noise(seed: string, sizeBytes: number): Uint8Array {
  const blocks: Uint8Array[] = []
  for (let length = 0; length < sizeBytes; length += 64) {
    blocks.push(Bun.CryptoHasher.hash('sha512', `${seed}:${length}`))
  }
  return new Uint8Array(Buffer.concat(blocks).subarray(0, sizeBytes))
}

export function noiseBlob(seed: string, sizeBytes: number, algorithm: Algorithm): Content {
  return blobOf(noise(seed, sizeBytes), algorithm)
}

export function blobOf(bytes: Uint8Array, algorithm: Algorithm): Content {
  return { digest: digestOf(bytes, algorithm), bytes }
}

/** A layer's archive, as it is before compression. */
export function layerTar(seed: string): Uint8Array {
  const content = textBytes(`A file of ${seed}.\n${Buffer.from(noise(seed, 48)).toString('hex')}\n`)
  return makeTar([{ name: './conformance.txt', content }])
}
