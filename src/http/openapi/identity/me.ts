import type { Operation } from '../operation.ts'

export const meOperations: readonly Operation[] = [
  {
    operationId: 'getMe',
    part: 'identity',
    method: 'get',
    path: '/me',
    summary: 'Who the caller is',
    caller: 'known',
    answers: {
      200: {
        description: 'The caller.',
        headers: { 'Cache-Control': 'always' },
        content: { 'application/json': 'MeResponse' },
      },
    },
  },
]
