// The official suite's sets of images and indexes.
import { mediaTypes, noise } from './content.ts'
import { amd64, arm64, type DataSet, DataSetBuilder } from './data-set.ts'

export interface NamedDataSet {
  /** Its name in the official suite. */
  readonly official: string
  /** Completes "takes in ...". */
  readonly what: string
  /** Tags go with the push by digest, as `?tag=`, instead of a push each. */
  readonly hasTagParameters?: boolean
  readonly set: DataSet
}

function build(official: string, fill: (builder: DataSetBuilder) => void, options = {}): DataSet {
  const builder = new DataSetBuilder(official, options)
  fill(builder)
  return builder.build()
}

function image(): DataSet {
  return build('image', (builder) => builder.addImage({ tag: 'image' }))
}

function uncompressedImage(): DataSet {
  return build('image-uncompressed', (builder) =>
    builder.addImage({ layers: [builder.addLayer(false), builder.addLayer(false)], tag: 'image-uncompressed' }),
  )
}

/** Close to 4 MB, which every registry must take. */
function largeManifest(): DataSet {
  const annotations = Object.fromEntries(
    Array.from({ length: 390 }, (_, index) => [`large-annotation-${index}`, 'A'.repeat(10_000)]),
  )
  return build('large-manifest', (builder) => builder.addImage({ annotations, tag: 'large-manifest' }))
}

function index(): DataSet {
  return build('index', (builder) => builder.addPlatformIndex({ tag: 'index' }))
}

function nestedIndex(): DataSet {
  return build('nested-index', (builder) =>
    builder.addIndex([builder.addPlatformIndex(), builder.addPlatformIndex()], { tag: 'index-of-index' }),
  )
}

function emptyIndex(): DataSet {
  return build('empty-index', (builder) => builder.addIndex([], { tag: 'index' }))
}

function embeddedData(): DataSet {
  return build('data-field', (builder) => builder.addImage({ tag: 'data-field' }), { isDataEmbedded: true })
}

/** Two of three layers are only named with the addresses where they lie. */
function foreignLayers(): DataSet {
  return build('non-distributable-layers', (builder) => {
    const foreign = [mediaTypes.foreignGzipLayer, mediaTypes.foreignLayer].map((mediaType) => {
      const descriptor = builder.describe(mediaType, noise(builder.nextSeed(), 256))
      return { ...descriptor, urls: [`https://store.example.com/${descriptor.digest.replace(':', '/')}`] }
    })
    builder.addImage({ layers: [...foreign, builder.addLayer()], tag: 'non-distributable-image' })
  })
}

function customFields(): DataSet {
  return build('custom-fields', (builder) => builder.addPlatformIndex({ tag: 'custom-fields' }), {
    hasCustomFields: true,
  })
}

function noLayers(): DataSet {
  return build('no-layers', (builder) => builder.addImage({ layers: [], tag: 'no-layers' }))
}

/** Everything by sha512, and no tags: a push by tag could not say which algorithm it means. */
function sha512(): DataSet {
  return build('sha512', (builder) => builder.addPlatformIndex(), { algorithm: 'sha512' })
}

/** Each manifest gets a tag, and the index a second one. */
function tagParameters(algorithm: 'sha256' | 'sha512'): DataSet {
  const official = `tag-param-${algorithm}`
  return build(
    official,
    (builder) => {
      builder.addPlatformIndex({ tag: official })
      builder.build().manifests.forEach(({ digest }, place) => {
        builder.addTag(`${official}-${place}`, digest)
      })
    },
    { algorithm },
  )
}

export const imageSets: readonly NamedDataSet[] = [
  { official: 'image', what: 'an image', set: image() },
  { official: 'image-uncompressed', what: 'an image of uncompressed layers', set: uncompressedImage() },
  { official: 'large-manifest', what: 'an image with a manifest of nearly 4 MB', set: largeManifest() },
  { official: 'index', what: 'an index of two platforms', set: index() },
  { official: 'nested-index', what: 'an index of indexes', set: nestedIndex() },
  { official: 'empty-index', what: 'an index of nothing', set: emptyIndex() },
  { official: 'data-field', what: 'an image with its content in the descriptors', set: embeddedData() },
  { official: 'non-distributable-layers', what: 'an image whose layers lie elsewhere', set: foreignLayers() },
  { official: 'custom-fields', what: 'an index with fields that no specification knows', set: customFields() },
  { official: 'no-layers', what: 'an image without layers', set: noLayers() },
  { official: 'sha512', what: 'an index with all its content by sha512', set: sha512() },
  {
    official: 'tag-param-sha256',
    what: 'an index whose tags come as parameters',
    hasTagParameters: true,
    set: tagParameters('sha256'),
  },
  {
    official: 'tag-param-sha512',
    what: 'an index by sha512 whose tags come as parameters',
    hasTagParameters: true,
    set: tagParameters('sha512'),
  },
]

/** An image of which one layer is not pushed, and an index of which one image is not. */
function sparse(): DataSet {
  return build('sparse', (builder) => {
    const missingLayer = builder.describe(mediaTypes.gzipLayer, noise(builder.nextSeed(), 1024))
    builder.addImage({ layers: [missingLayer, builder.addLayer()], tag: 'sparse-image' })
    const missingImage = builder.describe(mediaTypes.image, noise(builder.nextSeed(), 1024))
    const present = { ...builder.addImage(), platform: amd64 }
    builder.addIndex([present, { ...missingImage, platform: arm64 }], { tag: 'sparse-index' })
  })
}

export const sparseSets: readonly NamedDataSet[] = [
  { official: 'sparse', what: 'an image and an index that lack content', set: sparse() },
]
