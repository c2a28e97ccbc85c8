// The data sets of the official suite.
import { type DataSet, type DataSetOptions, type Descriptor, freshBytes, mediaTypes, platforms } from './data-set.ts'

export interface NamedSet {
  /** Its name in the official suite. */
  readonly official: string
  readonly what: string
  readonly options?: DataSetOptions
  /** Tags are pushed with the digest, as `?tag=`, instead of with a push each. */
  readonly hasTagParameters?: true
  readonly fill: (set: DataSet, tag: string) => unknown
}

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
  { official: 'image', what: 'an image', fill: (set, tag) => set.addImage({ tag }) },
  {
    official: 'image-uncompressed',
    what: 'an image of uncompressed layers',
    fill: (set, tag) => set.addImage({ layers: [set.addBlob(layer), set.addBlob(layer)], tag }),
  },
  {
    official: 'large-manifest',
    what: 'an image with a manifest of nearly 4 MB',
    fill: (set, tag) => set.addImage({ annotations: manyAnnotations, tag }),
  },
  { official: 'no-layers', what: 'an image without layers', fill: (set, tag) => set.addImage({ layers: [], tag }) },
  {
    official: 'non-distributable-layers',
    what: 'an image whose layers are stored elsewhere',
    fill: (set, tag) => {
      const foreign = { ...set.describe(foreignLayer), urls: ['https://store.example.com/layer'] }
      set.addImage({ layers: [foreign, set.addBlob(layer)], tag })
    },
  },
  {
    official: 'data-field',
    what: 'an image with its content in the descriptors',
    options: { isDataEmbedded: true },
    fill: (set, tag) => set.addImage({ tag }),
  },
  { official: 'index', what: 'an index of two platforms', fill: (set, tag) => set.addPlatformIndex({ tag }) },
  {
    official: 'nested-index',
    what: 'an index of indexes',
    fill: (set, tag) => set.addIndex([set.addPlatformIndex(), set.addPlatformIndex()], { tag }),
  },
  { official: 'empty-index', what: 'an index of nothing', fill: (set, tag) => set.addIndex([], { tag }) },
  {
    official: 'custom-fields',
    what: 'an index with members that no specification knows',
    options: { hasCustomFields: true },
    fill: (set, tag) => set.addPlatformIndex({ tag }),
  },
  {
    // Without tags: a push by tag cannot say which algorithm it means.
    official: 'sha512',
    what: 'an index with all its content by sha512',
    options: { algorithm: 'sha512' },
    fill: (set) => set.addPlatformIndex(),
  },
  {
    official: 'tag-param-sha256',
    what: 'an index whose tags come as parameters',
    hasTagParameters: true,
    fill: addTaggedIndex,
  },
  {
    official: 'tag-param-sha512',
    what: 'an index by sha512 whose tags come as parameters',
    options: { algorithm: 'sha512' },
    hasTagParameters: true,
    fill: addTaggedIndex,
  },
  {
    official: 'artifact',
    what: 'an artifact',
    fill: (set, tag) => set.addArtifact(exampleOne, set.addBlob(exampleOne), { tag }),
  },
  {
    official: 'artifact-without-layers',
    what: 'an artifact without content',
    fill: (set, tag) =>
      set.addArtifact(exampleOne, set.addBlob(mediaTypes.empty, new TextEncoder().encode('{}')), { tag }),
  },
  { official: 'artifact-index', what: 'an index of artifacts', fill: (set, tag) => addArtifactIndex(set, {}, tag) },
  {
    official: 'artifacts-with-subject',
    what: 'an image and its three referrers, one without an artifact type',
    fill: (set, tag) => {
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
  },
  {
    official: 'index-with-subject',
    what: 'an index and the index that refers to it',
    fill: (set, tag) => addArtifactIndex(set, { subject: set.addPlatformIndex({ tag: 'index' }) }, tag),
  },
  {
    // distribution-spec, "Listing Referrers": an index without a type has none in the list either. Not in the official set.
    official: 'index-with-subject',
    what: 'an index without an artifact type that refers to an image',
    fill: (set, tag) => set.addIndex([], { subject: set.addImage({ tag }), annotations: annotations() }),
  },
  {
    official: 'missing-subject',
    what: 'an artifact whose subject is missing',
    fill: (set, tag) => {
      const options = { subject: set.describe(image), annotations: annotations(), tag }
      set.addArtifact(exampleOne, set.addBlob(exampleOne), options)
    },
  },
]

/** Needs the setting `manifests.missing_content: allow`. */
export const sparseSet: NamedSet = {
  official: 'sparse',
  what: 'an image without one of its layers, and an index without one of its images',
  fill: (set, tag) => {
    set.addImage({ layers: [set.describe(layer, freshBytes(100)), set.addBlob(layer)], tag: 'sparse-image' })
    set.addIndex([set.addImage(), set.describe(image)], { tag })
  },
}
