import { dockerManifest, dockerManifestList, ociIndex, ociManifest } from '../../../oci/media-types.ts'
import type { Operation } from '../operation.ts'

const path = '/v2/{image}/manifests/{tag}'

export const manifestOperations: readonly Operation[] = [
  {
    operationId: 'getImageTagManifest',
    part: 'registry',
    method: 'get',
    path,
    summary: 'A manifest by tag or digest',
    description: 'Always as the type that it was pushed as; `Accept` is not asked.',
    caller: 'pull',
    parameters: ['image', 'tag', 'ifNoneMatch'],
    answers: {
      200: {
        description: 'The manifest, byte for byte.',
        headers: { 'Docker-Content-Digest': 'always', ETag: 'always', 'Content-Security-Policy': 'always' },
        content: {
          [dockerManifest]: 'ManifestResponse',
          [ociManifest]: 'ManifestResponse',
          [ociIndex]: 'ManifestResponse',
          // Only where `manifests.additional_media_types` names it.
          [dockerManifestList]: 'ManifestResponse',
        },
      },
      304: { description: 'Not changed.', headers: { 'Docker-Content-Digest': 'always', ETag: 'always' } },
    },
    refusals: ['name-unknown', 'manifest-unknown'],
  },
  {
    operationId: 'putImageTagManifest',
    part: 'registry',
    method: 'put',
    path,
    summary: 'Register a manifest by tag or digest',
    description: 'What the manifest names must be here already; its subject need not be.',
    caller: 'push',
    parameters: ['image', 'tag', 'moreTags'],
    requestBody: {
      required: true,
      content: {
        [dockerManifest]: 'ImageManifestUpload',
        [ociManifest]: 'ImageManifestUpload',
        [ociIndex]: 'ImageIndexUpload',
      },
    },
    answers: {
      201: {
        description: 'The manifest is stored, and its tags point to it.',
        headers: {
          Location: 'always',
          'Docker-Content-Digest': 'always',
          'OCI-Subject': 'sometimes',
          'OCI-Tag': 'sometimes',
        },
      },
    },
    refusals: [
      'disk-low',
      'tag-invalid',
      'too-many-tags',
      'digest-invalid',
      'digest-unsupported',
      'digest-mismatch',
      'manifest-invalid',
      'manifest-type-unsupported',
      'manifest-too-large',
      'manifest-blob-unknown',
    ],
  },
  {
    operationId: 'deleteManifest',
    part: 'registry',
    method: 'delete',
    path,
    summary: 'Delete a tag, or a manifest with all its tags',
    caller: 'delete',
    parameters: ['image', 'tag'],
    answers: { 202: { description: 'It is gone.' } },
    refusals: [
      'tag-invalid',
      'digest-invalid',
      'digest-unsupported',
      'name-unknown',
      'manifest-unknown',
      'manifest-in-use',
    ],
  },
]
