import { formatTime } from '../../lib/quantities.ts'
import { parseRepositoryName, type RepositoryName } from '../../oci/names.ts'
import { findPolicy } from '../../registry/policies.ts'
import {
  type DecisionPosition,
  listDecisions,
  removeRetention,
  setRetention,
  type TagDecision,
} from '../../registry/retention.ts'
import { parseRetentionPolicy, type RetentionPolicy } from '../../registry/retention-rules.ts'
import { runRetention } from '../../registry/retention-run.ts'
import { type Answer, jsonAnswer } from '../answer.ts'
import type { RegistryExchange } from '../exchange.ts'
import { jsonBody, readUncheckedJson } from '../json-body.ts'
import { apiPrefix } from '../mounts.ts'
import { nextPageLink, parseAfter, parsePage } from '../paging.ts'
import { json, type Route } from '../route.ts'
import { policyBytesMax } from './immutable-tags.ts'

const path = `${apiPrefix}/policies/retention`
const retentionPolicy = jsonBody('RetentionPolicy', policyBytesMax)
const byOperators = { access: 'enabled account', right: 'operate' } as const

const planned = {
  parameters: ['repositoryFilter', 'n', 'last'],
  answers: {
    200: {
      description: 'The decisions.',
      headers: { Link: 'sometimes' },
      content: json('RetentionPlanResponse'),
    },
  },
} as const

export const retentionRoutes: readonly Route[] = [
  {
    operationId: 'getRetention',
    method: 'GET',
    pattern: path,
    ...byOperators,
    handle: getRetention,
    summary: 'Get the retention policy',
    answers: { 200: { description: 'The policy.', content: json('RetentionPolicyResponse') } },
  },
  {
    operationId: 'putRetention',
    method: 'PUT',
    pattern: path,
    ...byOperators,
    handle: putRetention,
    summary: 'Replace the retention policy',
    description:
      'It is applied every `retention.every`, and on command. Get its plan first, to see what it would remove. A policy that has changed is not applied any more when this is answered.',
    requestBody: retentionPolicy,
    answers: { 200: { description: 'The policy is stored.', content: json('RetentionPolicyResponse') } },
    refusals: ['body-invalid'],
  },
  {
    operationId: 'deleteRetention',
    method: 'DELETE',
    pattern: path,
    ...byOperators,
    handle: deleteRetention,
    summary: 'Remove the retention policy',
    description: 'Idempotent.',
    answers: { 204: { description: 'Nothing is removed by a policy of the account.' } },
  },
  {
    operationId: 'getRetentionPlan',
    method: 'GET',
    pattern: `${path}/plan`,
    ...byOperators,
    handle: getPlan,
    summary: 'Get what the retention policy would do with each tag now, and why',
    description: 'Changes nothing. Without a policy, all tags are kept.',
    ...planned,
    refusals: ['page-size-invalid', 'name-invalid'],
  },
  {
    operationId: 'postRetentionPlan',
    method: 'POST',
    pattern: `${path}/plan`,
    ...byOperators,
    handle: postPlan,
    summary: 'Get what another retention policy would do with each tag, and why',
    description: 'Changes nothing. For the next page, send the policy again to the address in `Link`.',
    requestBody: retentionPolicy,
    ...planned,
    refusals: ['body-invalid', 'page-size-invalid', 'name-invalid'],
  },
  {
    operationId: 'runRetention',
    method: 'POST',
    pattern: `${path}/run`,
    ...byOperators,
    handle: postRun,
    summary: 'Apply the retention policy now',
    description: 'One request does a part of the work. Repeat it with `last` of the answer until that is null.',
    parameters: ['last'],
    answers: { 200: { description: 'What was removed.', content: json('RetentionRunResponse') } },
    refusals: ['name-invalid'],
  },
]

async function getRetention({ app, account }: RegistryExchange): Promise<Answer> {
  const stored = await findPolicy(app, account.id, 'retention')
  const policy = stored === undefined ? { rules: [] } : JSON.parse(stored.body)
  return jsonAnswer(200, {
    ...policy,
    changedAt: formatTime(stored?.changedAt),
    changedBy: stored?.changedBy ?? null,
  })
}

async function putRetention(exchange: RegistryExchange): Promise<Answer> {
  const { app, account, principal } = exchange
  const body = await readUncheckedJson(exchange, retentionPolicy)
  const policy = parseRetentionPolicy(body)
  await setRetention(app, account.id, { json: body as object, policy }, principal)
  return getRetention(exchange)
}

async function deleteRetention({ app, account }: RegistryExchange): Promise<Answer> {
  await removeRetention(app, account.id)
  return { status: 204, headers: {} }
}

async function getPlan(exchange: RegistryExchange): Promise<Answer> {
  const stored = await findPolicy(exchange.app, exchange.account.id, 'retention')
  return answerPlan(exchange, parseRetentionPolicy(stored === undefined ? {} : JSON.parse(stored.body)))
}

async function postPlan(exchange: RegistryExchange): Promise<Answer> {
  return answerPlan(exchange, parseRetentionPolicy(await readUncheckedJson(exchange, retentionPolicy)))
}

async function answerPlan({ app, account, target }: RegistryExchange, policy: RetentionPolicy): Promise<Answer> {
  const { after: text, limit = app.settings.pageDefault } = parsePage(target.query, app.settings.pageMax)
  const filter = target.query.get('repository')
  const only = filter === null ? undefined : parseRepositoryName(filter)
  const { decisions, next } =
    limit === 0
      ? { decisions: [], next: undefined }
      : await listDecisions(app, account, policy, { after: parseDecisionPosition(text), limit, only })
  const last = next && { n: String(limit), last: formatDecisionPosition(next) }
  const link = last && nextPageLink(`${path}/plan`, only === undefined ? last : { repository: only, ...last })
  return jsonAnswer(200, { decisions: decisions.map(showDecision) }, link === undefined ? {} : { link })
}

function showDecision({ repository, state, isKept, rule, reason }: TagDecision) {
  return {
    repository,
    tag: state.tag,
    digest: state.digest,
    pushedAt: formatTime(state.pushedAt),
    pulledAt: formatTime(state.pulledAt),
    action: isKept ? 'keep' : 'remove',
    rule: rule ?? null,
    reason,
  }
}

/** A colon is in no name of a repository and in no tag. */
function formatDecisionPosition({ repository, tag }: DecisionPosition): string {
  return tag === undefined ? repository : `${repository}:${tag}`
}

function parseDecisionPosition(text: string | undefined): DecisionPosition | undefined {
  if (text === undefined) return undefined
  const [repository = '', tag] = text.split(':')
  return { repository: repository as RepositoryName, tag }
}

/** How much one request does at most, so that it is answered in time. */
const portion = { removalsMax: 1_000, repositoriesMax: 100 }

async function postRun({ app, account, principal, target }: RegistryExchange): Promise<Answer> {
  const text = parseAfter(target.query)
  const after = text === undefined ? undefined : parseRepositoryName(text)
  const { next, ...removed } = await runRetention(app, account.id, principal, { ...portion, after })
  return jsonAnswer(200, { ...removed, last: next ?? null })
}
