import type { Operation } from '../operation.ts'

export const serviceOperations: readonly Operation[] = [
  {
    operationId: 'enableService',
    part: 'service',
    method: 'post',
    path: '/enable',
    summary: 'Switch the registry of the account on',
    description:
      'Idempotent. Refused with 503 when a store that it needs does not answer, and with 403 while the operator of the service has suspended the account.',
    caller: 'operate',
    answers: { 200: { description: 'The registry is on.' } },
    refusals: ['account-suspended'],
  },
  {
    operationId: 'disableService',
    part: 'service',
    method: 'post',
    path: '/disable',
    summary: 'Switch the registry of the account off',
    description: 'Idempotent. Deletes nothing; registry operations but the check of credentials are then refused.',
    caller: 'operate',
    answers: { 200: { description: 'The registry is off.' } },
  },
  {
    operationId: 'getStats',
    part: 'service',
    method: 'get',
    path: '/stats',
    summary: 'Statistics of the account',
    caller: 'operate',
    answers: { 200: { description: 'The statistics.', content: { 'application/json': 'StatsResponse' } } },
  },
  {
    operationId: 'getOpenApi',
    part: 'service',
    method: 'get',
    path: '/openapi.json',
    summary: 'This document',
    caller: 'anyone',
    needsNothing: true,
    answers: { 200: { description: 'OpenAPI 3.1.', content: { 'application/json': 'OpenApiDocument' } } },
  },
]
