import type { Operation } from '../operation.ts'

export const catalogOperations: readonly Operation[] = [
  {
    operationId: 'getCatalog',
    part: 'registry',
    method: 'get',
    path: '/v2/_catalog',
    summary: 'The repositories that the caller may pull from',
    caller: 'pull',
    parameters: ['n', 'last'],
    answers: {
      200: {
        description: 'Names in byte order.',
        headers: { Link: 'sometimes' },
        content: { 'application/json': 'CatalogResponse' },
      },
    },
    refusals: ['page-size-invalid'],
  },
]
