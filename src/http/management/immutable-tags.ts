import { formatTime } from '../../lib/quantities.ts'
import { parseImmutableTagPolicy, removeImmutableTags, setImmutableTags } from '../../registry/immutable-tag-rules.ts'
import { findPolicy } from '../../registry/policies.ts'
import { type Answer, jsonAnswer } from '../answer.ts'
import type { RegistryExchange } from '../exchange.ts'
import { jsonBody, readUncheckedJson } from '../json-body.ts'
import { apiPrefix } from '../mounts.ts'
import { json, type Route } from '../route.ts'

export const policyBytesMax = 64 * 1024
const immutableTagPolicy = jsonBody('ImmutableTagPolicy', policyBytesMax)
const immutableTags = {
  pattern: `${apiPrefix}/policies/immutable-tags`,
  access: 'enabled account',
  right: 'operate',
} as const

export const immutableTagRoutes: readonly Route[] = [
  {
    operationId: 'getImmutableTags',
    method: 'GET',
    ...immutableTags,
    handle: getImmutableTags,
    summary: 'Get the rules for immutable tags',
    answers: { 200: { description: 'The rules.', content: json('ImmutableTagPolicyResponse') } },
  },
  {
    operationId: 'putImmutableTags',
    method: 'PUT',
    ...immutableTags,
    handle: putImmutableTags,
    summary: 'Replace the rules for immutable tags',
    description:
      'An immutable tag can be created, but not moved to another manifest: such a push or restore is refused with 409. A push of the same manifest succeeds. The deletion of such a tag, or of its manifest, needs the right `operate`. The rules hold for existing tags too, and on every server as soon as this is answered.',
    requestBody: immutableTagPolicy,
    answers: { 200: { description: 'The rules hold.', content: json('ImmutableTagPolicyResponse') } },
    refusals: ['body-invalid'],
  },
  {
    operationId: 'deleteImmutableTags',
    method: 'DELETE',
    ...immutableTags,
    handle: deleteImmutableTags,
    summary: 'Remove the rules for immutable tags',
    description: 'Idempotent.',
    answers: { 204: { description: 'All tags can change.' } },
  },
]

async function getImmutableTags({ app, account }: RegistryExchange): Promise<Answer> {
  const stored = await findPolicy(app, account.id, 'immutable-tags')
  const policy = stored === undefined ? { rules: [] } : JSON.parse(stored.body)
  return jsonAnswer(200, {
    ...policy,
    changedAt: formatTime(stored?.changedAt),
    changedBy: stored?.changedBy ?? null,
  })
}

async function putImmutableTags(exchange: RegistryExchange): Promise<Answer> {
  const { app, account, principal } = exchange
  const policy = parseImmutableTagPolicy(await readUncheckedJson(exchange, immutableTagPolicy))
  await setImmutableTags(app, account.id, policy, principal)
  return getImmutableTags(exchange)
}

async function deleteImmutableTags({ app, account }: RegistryExchange): Promise<Answer> {
  await removeImmutableTags(app, account.id)
  return { status: 204, headers: {} }
}
