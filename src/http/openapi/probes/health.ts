import type { Operation } from '../operation.ts'

const answers = { 200: { description: 'Yes.', content: { 'application/json': 'ProbeResponse' } } } as const

export const healthOperations: readonly Operation[] = [
  {
    operationId: 'getHealth',
    part: 'probes',
    method: 'get',
    path: '/healthz',
    summary: 'Is the process alive?',
    caller: 'anyone',
    needsNothing: true,
    answers,
  },
  {
    operationId: 'getReadiness',
    part: 'probes',
    method: 'get',
    path: '/readyz',
    summary: 'Can requests be served?',
    caller: 'anyone',
    answers,
  },
]
