import { ociIndex } from '../../../oci/media-types.ts'
import type { Operation } from '../operation.ts'

export const referrerOperations: readonly Operation[] = [
  {
    operationId: 'getImageDigestReferrers',
    part: 'registry',
    method: 'get',
    path: '/v2/{image}/referrers/{digest}',
    summary: 'The manifests that name a digest as their subject',
    description: 'An unknown digest has none. A page is at most 4 MiB; `Link` leads to the next.',
    caller: 'pull',
    parameters: ['image', 'subject', 'artifactType', 'last'],
    answers: {
      200: {
        description: 'An image index with an entry for each of them.',
        headers: { 'OCI-Filters-Applied': 'sometimes', Link: 'sometimes' },
        content: { [ociIndex]: 'ReferrerResponse' },
      },
    },
    refusals: ['digest-invalid'],
  },
]
