// The data sets of the official suite.
import { type DataSet, type DataSetOptions, type Descriptor, freshBytes, mediaTypes, platforms } from './data-set.ts'

type Fill = (set: DataSet, tag: string) => unknown
type Options = DataSetOptions & {
  /** Tags are pushed with the digest, as `?tag=`, instead of with a push each. */
  readonly hasTagParameters?: true
}

/** [its name in the official suite, what it is, how it is filled, options] */
export type NamedSet = readonly [official: string, what: string, fill: Fill, options?: Options]

const { exampleOne, exampleTwo, foreignLayer, image, layer } = mediaTypes

const annotations = () => ({ 'org.example.unique': crypto.randomUUID() })

/** Close to 4 MB, which every registry must accept. */
const manyAnnotations = Object.fromEntries(
  Array.from({ length: 390 }, (_, index) => [`large-annotation-${index}`, 'A'.repeat(10_000)]),
)

/** An index of two artifacts. Index and artifacts have the same type and refer to the same subject. */
function addArtifactIndex(set: DataSet, subject: { readonly subject?: Descriptor }, tag: string): void {
  const artifacts = platforms.map((platform) => {
    const artifact = set.addArtifact(exampleOne, set.addBlob(exampleOne), { ...subject, annotations: annotations() })
    return { ...artifact, platform }
  })
  set.addIndex(artifacts, { ...subject, tag, artifactType: exampleOne, annotations: annotations() })
}

/** Each manifest gets a tag, and the index a second one. */
function addTaggedIndex(set: DataSet, tag: string): void {
  set.addPlatformIndex({ tag })
  for (const [place, { digest }] of set.manifests.entries()) set.tags.set(`${tag}-${place}`, digest)
}

export const dataSets: readonly NamedSet[] = [
  ['image', 'an image', (set, tag) => set.addImage({ tag })],
  [
    'image-uncompressed',
    'an image of uncompressed layers',
    (set, tag) => set.addImage({ layers: [set.addBlob(layer), set.addBlob(layer)], tag }),
  ],
  [
    'large-manifest',
    'an image with a manifest of nearly 4 MB',
    (set, tag) => set.addImage({ annotations: manyAnnotations, tag }),
  ],
  ['no-layers', 'an image without layers', (set, tag) => set.addImage({ layers: [], tag })],
  [
    'non-distributable-layers',
    'an image whose layers are stored elsewhere',
    (set, tag) => {
      const foreign = { ...set.describe(foreignLayer), urls: ['https://store.example.com/layer'] }
      set.addImage({ layers: [foreign, set.addBlob(layer)], tag })
    },
  ],
  ['data-field', 'an image with embedded content', (set, tag) => set.addImage({ tag }), { isDataEmbedded: true }],
  ['index', 'an index of two platforms', (set, tag) => set.addPlatformIndex({ tag })],
  [
    'nested-index',
    'an index of indexes',
    (set, tag) => set.addIndex([set.addPlatformIndex(), set.addPlatformIndex()], { tag }),
  ],
  ['empty-index', 'an index of nothing', (set, tag) => set.addIndex([], { tag })],
  [
    'custom-fields',
    'an index with unknown members',
    (set, tag) => set.addPlatformIndex({ tag }),
    { hasCustomFields: true },
  ],
  // Without tags: a push by tag cannot say which algorithm it means.
  ['sha512', 'an index with all its content by sha512', (set) => set.addPlatformIndex(), { algorithm: 'sha512' }],
  ['tag-param-sha256', 'an index with tags as parameters', addTaggedIndex, { hasTagParameters: true }],
  ['tag-param-sha512', 'the same by sha512', addTaggedIndex, { algorithm: 'sha512', hasTagParameters: true }],
  ['artifact', 'an artifact', (set, tag) => set.addArtifact(exampleOne, set.addBlob(exampleOne), { tag })],
  [
    'artifact-without-layers',
    'an artifact without content',
    (set, tag) => set.addArtifact(exampleOne, set.addBlob(mediaTypes.empty, new TextEncoder().encode('{}')), { tag }),
  ],
  ['artifact-index', 'an index of artifacts', (set, tag) => addArtifactIndex(set, {}, tag)],
  [
    'artifacts-with-subject',
    'an image and its three referrers, one without an artifact type',
    (set, tag) => {
      const subject = set.addImage({ tag })
      set.addImage({ subject })
      for (const type of [exampleOne, exampleTwo]) {
        set.addArtifact(type, set.addBlob(type), {
          subject,
          annotations: annotations(),
          tag: type.replaceAll('/', '-'),
        })
      }
    },
  ],
  [
    'index-with-subject',
    'an index and the index that refers to it',
    (set, tag) => addArtifactIndex(set, { subject: set.addPlatformIndex({ tag: 'index' }) }, tag),
  ],
  // distribution-spec, "Listing Referrers": an index without a type has none in the list either. Not in the official set.
  [
    'index-with-subject',
    'an index without an artifact type that refers to an image',
    (set, tag) => set.addIndex([], { subject: set.addImage({ tag }), annotations: annotations() }),
  ],
  [
    'missing-subject',
    'an artifact whose subject is missing',
    (set, tag) => {
      const options = { subject: set.describe(image), annotations: annotations(), tag }
      set.addArtifact(exampleOne, set.addBlob(exampleOne), options)
    },
  ],
]

/** Needs the setting `manifests.missing_content: allow`. */
export const sparseSet: NamedSet = [
  'sparse',
  'an image without one of its layers, and an index without one of its images',
  (set, tag) => {
    set.addImage({ layers: [set.describe(layer, freshBytes(100)), set.addBlob(layer)], tag: 'sparse-image' })
    set.addIndex([set.addImage(), set.describe(image)], { tag })
  },
]
