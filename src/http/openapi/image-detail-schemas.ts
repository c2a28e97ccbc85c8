import { Type } from 'typebox'
import { anyDigest, digest, tags } from './formats.ts'

// The body of the route that shows one image. Texts of configs come from clients, and can be anything.

const textOrNull = Type.Union([Type.String(), Type.Null()])
const texts = Type.Array(Type.String())
const sizeBytes = Type.Integer({ minimum: 0 })

const ImageLayer = Type.Object({ digest: anyDigest, mediaType: Type.String(), sizeBytes })

const ImagePlatform = Type.Object({
  digest: anyDigest,
  mediaType: Type.String(),
  sizeBytes,
  os: textOrNull,
  architecture: textOrNull,
  variant: textOrNull,
  attests: Type.Union([Type.String(), Type.Null()], {
    description: 'The entry holds attestations of this image, and has no platform.',
  }),
})

const ImageConfig = Type.Object({
  created: textOrNull,
  os: textOrNull,
  architecture: textOrNull,
  variant: textOrNull,
  user: textOrNull,
  workingDir: textOrNull,
  env: texts,
  entrypoint: texts,
  cmd: texts,
  exposedPorts: texts,
  labels: Type.Record(Type.String(), Type.String()),
})

const ImageReferrer = Type.Object({
  digest,
  mediaType: Type.String(),
  artifactType: Type.Optional(Type.String()),
  sizeBytes,
  referrers: Type.Array(Type.Object({}), { description: 'Its own referrers, in the same form.' }),
})

const ImageResponse = Type.Object({
  name: Type.String({ description: 'Name of the image.' }),
  digest,
  mediaType: Type.String(),
  artifactType: textOrNull,
  subject: Type.Union([anyDigest, Type.Null()]),
  sizeBytes: Type.Integer({ minimum: 0, description: 'Size of the manifest itself.' }),
  totalBytes: Type.Integer({
    minimum: 0,
    description: 'Sizes of the manifest, its config and its layers. Of an index: of the manifests that it lists.',
  }),
  tags,
  platforms: Type.Array(Type.Ref('#/components/schemas/ImagePlatform'), { description: 'The entries of an index.' }),
  layers: Type.Array(Type.Ref('#/components/schemas/ImageLayer')),
  config: Type.Union([Type.Ref('#/components/schemas/ImageConfig'), Type.Null()]),
  history: Type.Array(
    Type.Object({
      created: textOrNull,
      createdBy: textOrNull,
      comment: textOrNull,
      layer: Type.Union([Type.Ref('#/components/schemas/ImageLayer'), Type.Null()], {
        description: 'Null: the step adds no layer.',
      }),
    }),
  ),
  referrers: Type.Array(Type.Ref('#/components/schemas/ImageReferrer')),
  isCut: Type.Boolean({ description: 'There are more tags or referrers.' }),
})

export const imageDetailSchemas = { ImageLayer, ImagePlatform, ImageConfig, ImageReferrer, ImageResponse } as const
