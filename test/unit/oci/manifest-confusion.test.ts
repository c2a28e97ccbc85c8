// CVE-2021-41190: one document must not be an index to one reader and an image to another.
import { describe, expect, test } from 'bun:test'
import { dockerManifest, dockerManifestList, ociIndex, ociManifest, shapeOf } from '../../../src/oci/media-types.ts'
import { refusalOf } from '../../support/basics/outcomes.ts'
import { type Body, descriptor, imageBody, indexBody, parse } from '../../support/clients/manifest-bodies.ts'

const known = [dockerManifest, ociManifest, ociIndex, dockerManifestList]
const ownTypes = [...known, 'application/json', '', undefined, null]

/** Which of the fields that tell a kind are there, and in which kind they are right. */
const fieldSets: readonly { readonly name: string; readonly body: Body; readonly shape: 'image' | 'index' | 'none' }[] =
  [
    { name: 'config and layers', body: imageBody(), shape: 'image' },
    { name: 'manifests', body: indexBody(), shape: 'index' },
    { name: 'everything', body: { ...imageBody(), ...indexBody() }, shape: 'none' },
    { name: 'manifests and config', body: indexBody({ config: descriptor() }), shape: 'none' },
    { name: 'manifests and layers', body: indexBody({ layers: [] }), shape: 'none' },
    { name: 'config alone', body: { schemaVersion: 2, config: descriptor() }, shape: 'none' },
    { name: 'layers alone', body: { schemaVersion: 2, layers: [] }, shape: 'none' },
    { name: 'nothing', body: { schemaVersion: 2 }, shape: 'none' },
    { name: 'image and fsLayers', body: imageBody({ fsLayers: [] }), shape: 'none' },
    { name: 'index and fsLayers', body: indexBody({ fsLayers: [] }), shape: 'none' },
    { name: 'image, manifests empty', body: imageBody({ manifests: [] }), shape: 'none' },
    { name: 'image, manifests null', body: imageBody({ manifests: null }), shape: 'image' },
    { name: 'index, config and layers null', body: indexBody({ config: null, layers: null }), shape: 'index' },
  ]

describe('the matrix of content type, mediaType field and fields present', () => {
  for (const contentType of known) {
    for (const { name, body, shape } of fieldSets) {
      for (const ownType of ownTypes) {
        const full = ownType === undefined ? body : { ...body, mediaType: ownType }
        const agrees = ownType === undefined || ownType === null || ownType === contentType
        const isGood = agrees && shape === shapeOf(contentType)
        test(`${contentType} with mediaType ${ownType} and ${name} is ${isGood ? 'taken' : 'refused'}`, () => {
          expect(refusalOf(() => parse(full, contentType))).toBe(isGood ? undefined : 'manifest-invalid')
        })
      }
    }
  }
})

describe('a media type that is no manifest of ours', () => {
  test.each([
    '',
    'application/json',
    'application/vnd.docker.distribution.manifest.v1+json',
    'application/vnd.docker.distribution.manifest.v1+prettyjws',
    'application/vnd.oci.artifact.manifest.v1+json',
    'text/html',
    'toString',
  ])('%p is refused before the body is looked at', (mediaType) => {
    expect(refusalOf(() => parse('not JSON at all', mediaType))).toBe('manifest-type-unsupported')
  })
})

describe('a field in another spelling, which readers written in Go take for the field', () => {
  const variants: readonly (readonly [string, Body, string])[] = [
    ['an image with MediaType', imageBody({ MediaType: ociIndex }), ociManifest],
    ['an image with Manifests', imageBody({ Manifests: [descriptor()] }), ociManifest],
    ['an image with manifeſts', imageBody({ manifeſts: [descriptor()] }), ociManifest],
    ['an image with Subject', imageBody({ Subject: descriptor() }), ociManifest],
    ['an image with artifacttype', imageBody({ artifacttype: 'a/b' }), ociManifest],
    ['an image with FSLayers', imageBody({ FSLayers: [] }), ociManifest],
    ['an index with Config', indexBody({ Config: descriptor() }), ociIndex],
    ['an index with LAYERS', indexBody({ LAYERS: [descriptor()] }), ociIndex],
    ['an index with layerſ', indexBody({ layerſ: [descriptor()] }), ociIndex],
  ]
  test.each(variants)('%s is refused', (_what, body, mediaType) => {
    expect(refusalOf(() => parse(body, mediaType))).toBe('manifest-invalid')
  })

  test('beside the field itself is refused as the same key', () => {
    expect(refusalOf(() => parse(imageBody({ mediaType: ociManifest, MediaType: ociManifest }), ociManifest))).toBe(
      'manifest-invalid',
    )
  })
})
