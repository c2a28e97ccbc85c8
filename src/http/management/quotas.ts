import { listWarnings, usedOf } from '../../registry/quotas.ts'
import { type Answer, jsonAnswer } from '../answer.ts'
import type { RegistryExchange } from '../exchange.ts'
import { apiPrefix } from '../mounts.ts'
import { json, type Route } from '../route.ts'

export const quotaRoutes: readonly Route[] = [
  {
    operationId: 'getQuota',
    method: 'GET',
    pattern: `${apiPrefix}/quota`,
    access: 'enabled account',
    right: 'operate',
    handle: getQuota,
    summary: 'Get the limits of the account, and how much of them is used',
    description: 'Only the operator of the service can change the limits, with `berth account quota`.',
    answers: { 200: { description: 'The limits.', content: json('QuotaResponse') } },
  },
]

async function getQuota({ app, account }: RegistryExchange): Promise<Answer> {
  const usage = await app.metadata.usage.findOfAccount(account.id)
  const { bytes = null, repositories = null, tags = null } = account.quota ?? {}
  return jsonAnswer(200, {
    limits: { bytes, repositories, tags },
    used: usedOf(usage),
    warnings: listWarnings(account.quota, usage),
  })
}
