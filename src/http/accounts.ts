import { countImages, disableAccount, enableAccount } from '../registry/accounts.ts'
import { type Answer, jsonAnswer } from './answer.ts'
import type { CallerExchange } from './exchange.ts'
import { apiPrefix } from './mounts.ts'
import { json, type Route } from './route.ts'

export const accountRoutes: readonly Route[] = [
  {
    operationId: 'enableService',
    method: 'POST',
    pattern: `${apiPrefix}/enable`,
    access: 'known caller',
    right: 'operate',
    handle: enableService,
    summary: 'Enable the registry of the account',
    description:
      'Idempotent. Refused with 503 if a store that the registry needs does not answer, and with 403 while the operator of the service has suspended the account.',
    answers: { 200: { description: 'The registry is enabled.' } },
    refusals: ['account-suspended'],
  },
  {
    operationId: 'disableService',
    method: 'POST',
    pattern: `${apiPrefix}/disable`,
    access: 'known caller',
    right: 'operate',
    handle: disableService,
    summary: 'Disable the registry of the account',
    description:
      'Idempotent. Nothing is deleted. All registry operations except the authentication check are then refused.',
    answers: { 200: { description: 'The registry is disabled.' } },
  },
  {
    operationId: 'getStats',
    method: 'GET',
    pattern: `${apiPrefix}/stats`,
    access: 'known caller',
    right: 'operate',
    handle: getStats,
    summary: 'Get the statistics of the account',
    answers: { 200: { description: 'The statistics.', content: json('StatsResponse') } },
  },
]

async function enableService({ app, principal }: CallerExchange): Promise<Answer> {
  await enableAccount(app, principal.account)
  return { status: 200, headers: {} }
}

async function disableService({ app, principal }: CallerExchange): Promise<Answer> {
  await disableAccount(app, principal.account)
  return { status: 200, headers: {} }
}

async function getStats({ app, principal, peers, request }: CallerExchange): Promise<Answer> {
  return jsonAnswer(200, {
    imageCount: await countImages(app, principal.account),
    serverUrl: peers.originOf(request),
  })
}
