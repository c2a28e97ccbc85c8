import { formatTime } from '../../lib/quantities.ts'
import { RegistryRefusal } from '../../oci/errors.ts'
import { parseRepositoryPattern, type RepositoryPattern } from '../../oci/repository-pattern.ts'
import type { EventType } from '../../ports/events.ts'
import type { Delivery, DeliveryState, Webhook, WebhookSettings } from '../../ports/webhooks.ts'
import {
  createWebhook,
  deleteWebhook,
  getWebhook,
  listDeliveries,
  listWebhooks,
  parseEventType,
  retryDelivery,
  testWebhook,
  updateWebhook,
} from '../../registry/webhooks.ts'
import { type Answer, jsonAnswer } from '../answer.ts'
import type { Application, RegistryExchange } from '../exchange.ts'
import { jsonBody, readJson } from '../json-body.ts'
import { apiPrefix } from '../mounts.ts'
import { nextPageHeaders, openPosition, parsePage } from '../paging.ts'
import { fieldInvalid } from '../strict-json.ts'
import { showEvent } from './events.ts'

export const webhooksPath = `${apiPrefix}/webhooks`
export const newWebhookBody = jsonBody('NewWebhookRequest', 64 * 1024)
export const webhookBody = jsonBody('WebhookRequest', 64 * 1024)

export async function getWebhooks({ app, account, target }: RegistryExchange): Promise<Answer> {
  const { after, limit = app.settings.pageDefault } = parsePage(target.query, app.settings.pageMax)
  const page = await listWebhooks(app, account.id, { after, limit })
  const last = page.hasMore ? page.items.at(-1)?.name : undefined
  const webhooks = page.items.map((webhook) => showWebhook(webhook))
  return jsonAnswer(200, { webhooks }, nextPageHeaders(webhooksPath, limit, last))
}

export async function postWebhook(exchange: RegistryExchange): Promise<Answer> {
  const { app, account } = exchange
  const body = await readJson(exchange, newWebhookBody)
  const webhook = await createWebhook(app, account.id, body.name, parseSettings(body))
  const headers = { 'cache-control': 'no-store', location: `${webhooksPath}/${webhook.name}` }
  return jsonAnswer(201, showWebhook(webhook, webhook.secret), headers)
}

export async function getOneWebhook(exchange: RegistryExchange): Promise<Answer> {
  return jsonAnswer(200, showWebhook(await findWebhook(exchange)))
}

export async function putWebhook(exchange: RegistryExchange): Promise<Answer> {
  const body = await readJson(exchange, webhookBody)
  const webhook = await findWebhook(exchange)
  const rotatesSecret = body.rotateSecret ?? false
  const updated = await updateWebhook(exchange.app, webhook, parseSettings(body), { rotatesSecret })
  const answer = showWebhook(updated, rotatesSecret ? updated.secret : undefined)
  return jsonAnswer(200, answer, { 'cache-control': 'no-store' })
}

export async function removeWebhook(exchange: RegistryExchange): Promise<Answer> {
  await deleteWebhook(exchange.app, await findWebhook(exchange))
  return { status: 204, headers: {} }
}

export async function postTest(exchange: RegistryExchange): Promise<Answer> {
  const { app, account, principal, peers, request } = exchange
  const result = await testWebhook(app, await findWebhook(exchange), {
    origin: peers.originOf(request),
    accountName: account.name,
    subject: principal.subject,
    now: app.clock.now(),
  })
  const delivered = 'status' in result && result.status >= 200 && result.status < 300
  return jsonAnswer(200, { delivered, outcome: 'failure' in result ? result.failure : `status ${result.status}` })
}

export async function getDeliveries(exchange: RegistryExchange): Promise<Answer> {
  const { app, target } = exchange
  const webhook = await findWebhook(exchange)
  const state = parseState(target.query.get('state'))
  const { after, limit = app.settings.pageDefault } = parsePage(target.query, app.settings.pageMax)
  const page = await listDeliveries(app, webhook, state, { before: parseId(app, after), limit })
  const last = page.hasMore ? page.items.at(-1)?.id : undefined
  const path = `${webhooksPath}/${webhook.name}/deliveries`
  const link = nextPageHeaders(path, limit, last === undefined ? undefined : app.sealer.seal(String(last)))
  if (link['link'] !== undefined && state !== undefined) link['link'] = link['link'].replace('>;', `&state=${state}>;`)
  return jsonAnswer(200, { deliveries: page.items.map((delivery) => showDelivery(delivery, app)) }, link)
}

export async function postRetry(exchange: RegistryExchange): Promise<Answer> {
  const text = exchange.path['delivery'] ?? ''
  const id = parseId(exchange.app, text)
  const webhook = await findWebhook(exchange)
  if (id === undefined) throw new RegistryRefusal('delivery-unknown', { id: text.slice(0, 32) })
  await retryDelivery(exchange.app, webhook, id)
  return { status: 202, headers: {} }
}

function findWebhook({ app, account, path }: RegistryExchange): Promise<Webhook> {
  return getWebhook(app, account.id, path['webhook'] ?? '')
}

interface SettingsBody {
  readonly url: string
  readonly format?: string
  readonly types?: readonly string[]
  readonly repositories?: readonly string[]
  readonly enabled?: boolean
}

function parseSettings({ url, format, types = [], repositories = [], enabled = true }: SettingsBody): WebhookSettings {
  return {
    url,
    format: format === 'distribution' ? 'distribution' : 'cloudevents',
    types: types.map(parseType),
    repositories: repositories.map(parsePattern),
    isEnabled: enabled,
  }
}

function parseType(text: string, index: number): EventType {
  const type = parseEventType(text)
  if (type === undefined) throw fieldInvalid(`types[${index}]`, 'must be the type of an event')
  return type
}

function parsePattern(text: string, index: number): RepositoryPattern {
  const pattern = parseRepositoryPattern(text)
  if (pattern !== undefined) return pattern
  throw fieldInvalid(`repositories[${index}]`, 'must be the name of a repository, with * for any text')
}

const states: readonly string[] = ['pending', 'delivered', 'dead']

function parseState(text: string | null): DeliveryState | undefined {
  if (text === null) return undefined
  if (states.includes(text)) return text as DeliveryState
  throw fieldInvalid('state', 'must be pending, delivered or dead')
}

/** Ids are sealed, because deliveries are counted for all accounts together. */
function parseId(app: Pick<Application, 'sealer'>, text: string | undefined): number | undefined {
  const id = openPosition(app, text)
  return id === undefined ? undefined : Number(id)
}

function showWebhook(webhook: Webhook, secret?: string) {
  const { name, url, format, types, repositories, isEnabled, disabledBecause, createdAt } = webhook
  return {
    name,
    url,
    format,
    types,
    repositories,
    enabled: isEnabled,
    disabledBecause: disabledBecause ?? null,
    createdAt: formatTime(createdAt),
    ...(secret !== undefined && { secret }),
  }
}

function showDelivery(delivery: Delivery, app: Pick<Application, 'sealer'>) {
  const { id, event, state, attempts, createdAt, triedAt, outcome } = delivery
  return {
    id: app.sealer.seal(String(id)),
    event: showEvent(event, app),
    state,
    attempts,
    createdAt: formatTime(createdAt),
    triedAt: formatTime(triedAt),
    outcome: outcome ?? null,
  }
}
