import type { Operation } from '../operation.ts'

export const tagOperations: readonly Operation[] = [
  {
    operationId: 'getImageTagsList',
    part: 'registry',
    method: 'get',
    path: '/v2/{image}/tags/list',
    summary: 'The tags of an image',
    description: 'All of them, unless `n` asks for a page.',
    caller: 'pull',
    parameters: ['image', 'n', 'last'],
    answers: {
      200: {
        description: 'The tags.',
        headers: { Link: 'sometimes' },
        content: { 'application/json': 'TagsListResponse' },
      },
    },
    refusals: ['page-size-invalid', 'name-unknown'],
  },
]
