import type { Operation } from '../operation.ts'

export const baseOperations: readonly Operation[] = [
  {
    operationId: 'checkAuthentication',
    part: 'registry',
    method: 'get',
    path: '/v2/',
    summary: 'Are the credentials good?',
    description: 'Also for an account whose registry is off. `/v2` without the slash is the same.',
    caller: 'known',
    answers: { 200: { description: 'They are. The body is `{}`.', content: { 'application/json': 'bytes' } } },
  },
]
