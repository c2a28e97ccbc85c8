// The official suite's sets of artifacts and of manifests that refer to others.
import { digestOf, mediaTypes, textBytes } from './content.ts'
import { amd64, arm64, type DataSet, DataSetBuilder, type Descriptor, type ManifestOptions } from './data-set.ts'
import type { NamedDataSet } from './image-sets.ts'

const { exampleOne, exampleTwo, octets, empty } = mediaTypes
const greeting = 'org.opencontainers.conformance'

/** Annotations that must come back in the referrers list; the second is different for each artifact. */
function annotationsOf(builder: DataSetBuilder): Record<string, string> {
  return { [greeting]: 'hello', 'org.example.unique': builder.nextSeed() }
}

function artifact(): DataSet {
  const builder = new DataSetBuilder('artifact')
  builder.addArtifact({ artifactType: exampleOne, layer: builder.addNoise(exampleOne), tag: 'artifact' })
  return builder.build()
}

/** An index of two artifacts; index and artifacts are all of one type and share the options. */
function addArtifactIndex(builder: DataSetBuilder, options: ManifestOptions): Descriptor {
  const artifacts = [amd64, arm64].map((platform) => {
    const layer = builder.addNoise(exampleOne)
    const annotations = annotationsOf(builder)
    const { tag: _, ...shared } = options
    return { ...builder.addArtifact({ ...shared, artifactType: exampleOne, annotations, layer }), platform }
  })
  return builder.addIndex(artifacts, { ...options, artifactType: exampleOne, annotations: annotationsOf(builder) })
}

function artifactIndex(): DataSet {
  const builder = new DataSetBuilder('artifact-index')
  addArtifactIndex(builder, { tag: 'artifact-index' })
  return builder.build()
}

/** The image-spec's way: the only layer is the empty descriptor too. */
function artifactWithoutLayers(): DataSet {
  const builder = new DataSetBuilder('artifact-without-layers')
  const layer = builder.addBlob(empty, textBytes('{}'))
  builder.addArtifact({ artifactType: exampleOne, layer, tag: 'artifact-without-layers' })
  return builder.build()
}

/** Three referrers of one image: an image, known by its config's type, and two artifacts. */
function artifactsWithSubject(): DataSet {
  const builder = new DataSetBuilder('artifacts-with-subject')
  const subject = builder.addImage({ tag: 'image' })
  builder.addImage({ subject })
  for (const [artifactType, layerType, tag] of [
    [exampleOne, exampleOne, 'tagged-artifact1'],
    [exampleTwo, octets, 'tagged-artifact2'],
  ] as const) {
    const annotations = annotationsOf(builder)
    builder.addArtifact({ artifactType, annotations, layer: builder.addNoise(layerType), subject, tag })
  }
  return builder.build()
}

/** An index refers to an index, and so do the artifacts in it. */
function indexWithSubject(): DataSet {
  const builder = new DataSetBuilder('index-with-subject')
  const subject = builder.addPlatformIndex({ tag: 'index' })
  addArtifactIndex(builder, { subject, tag: 'tagged-artifact' })
  return builder.build()
}

/** distribution-spec, "Listing Referrers": an index without a type has none in the list either. Not in the official set. */
function untypedIndexWithSubject(): DataSet {
  const builder = new DataSetBuilder('untyped-index-with-subject')
  const subject = builder.addImage({ tag: 'image' })
  builder.addIndex([], { subject, annotations: annotationsOf(builder) })
  return builder.build()
}

function missingSubject(): DataSet {
  const builder = new DataSetBuilder('missing-subject')
  const subject = { mediaType: mediaTypes.image, size: 123, digest: digestOf(textBytes('content that nobody pushes')) }
  const annotations = annotationsOf(builder)
  const layer = builder.addNoise(exampleOne)
  builder.addArtifact({ artifactType: exampleOne, annotations, layer, subject, tag: 'tagged-artifact' })
  return builder.build()
}

export const artifactSets: readonly NamedDataSet[] = [
  { official: 'artifact', what: 'an artifact', set: artifact() },
  { official: 'artifact-index', what: 'an index of artifacts', set: artifactIndex() },
  { official: 'artifact-without-layers', what: 'an artifact without content', set: artifactWithoutLayers() },
]

export const referrerSets: readonly NamedDataSet[] = [
  { official: 'artifacts-with-subject', what: 'an image and its three referrers', set: artifactsWithSubject() },
  { official: 'index-with-subject', what: 'an index and the index that refers to it', set: indexWithSubject() },
  { official: 'missing-subject', what: 'an artifact whose subject is missing', set: missingSubject() },
  {
    official: 'index-with-subject',
    what: 'an index without a type that refers to an image',
    set: untypedIndexWithSubject(),
  },
]
