import type { Operation } from '../operation.ts'

export const healthOperations: readonly Operation[] = [
  {
    operationId: 'getHealth',
    part: 'probes',
    method: 'get',
    path: '/healthz',
    summary: 'Is the process alive?',
    caller: 'anyone',
    needsNothing: true,
    answers: { 200: { description: 'Yes.', content: { 'application/json': 'HealthResponse' } } },
  },
  {
    operationId: 'getReadiness',
    part: 'probes',
    method: 'get',
    path: '/readyz',
    summary: 'Can requests be served?',
    caller: 'anyone',
    answers: { 200: { description: 'Yes.', content: { 'application/json': 'ReadinessResponse' } } },
  },
]
