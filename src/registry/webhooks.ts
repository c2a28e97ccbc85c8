import { RegistryRefusal } from '../oci/errors.ts'
import type { EventType } from '../ports/events.ts'
import type { MetadataStore } from '../ports/metadata-store.ts'
import type { RowId } from '../ports/row-id.ts'
import type { SendResult, WebhookSender } from '../ports/webhook-sender.ts'
import type { Delivery, DeliveryState, Webhook, WebhookSettings } from '../ports/webhooks.ts'
import { checkStillOpen } from './accounts.ts'
import { eventTypes } from './event-types.ts'
import { type Page, toPage } from './pages.ts'
import { toMessage } from './webhook-messages.ts'

export interface WebhookParts {
  readonly sender: WebhookSender
  readonly perAccountMax: number
}

type ReadNeeds = { readonly metadata: Pick<MetadataStore, 'webhooks' | 'webhookDeliveries'> }
type ChangeNeeds = {
  readonly metadata: Pick<MetadataStore, 'transaction' | 'webhooks'>
  readonly webhooks: WebhookParts
}

const namePattern = /^[a-z0-9][a-z0-9._-]{0,63}$/
const secretBytes = 32

/** Undefined if no event has this type. */
export function parseEventType(text: string): EventType | undefined {
  return Object.hasOwn(eventTypes, text) ? (text as EventType) : undefined
}

export async function listWebhooks(
  { metadata }: ReadNeeds,
  accountId: RowId,
  { after, limit }: { readonly after: string | undefined; readonly limit: number },
): Promise<Page<Webhook>> {
  if (limit === 0) return { items: [], hasMore: false }
  return toPage(await metadata.webhooks.list(accountId, after, limit + 1), limit)
}

/** Refuses if there is none with this name. */
export async function getWebhook(
  { metadata }: { readonly metadata: Pick<MetadataStore, 'webhooks'> },
  accountId: RowId,
  name: string,
): Promise<Webhook> {
  const found = namePattern.test(name) ? await metadata.webhooks.find(accountId, name) : undefined
  if (found === undefined) throw new RegistryRefusal('webhook-unknown', { name: name.slice(0, 64) })
  return found
}

/** Creates the webhook and returns it with its secret, which nothing returns later. */
export async function createWebhook(
  { metadata, webhooks }: ChangeNeeds,
  accountId: RowId,
  name: string,
  settings: WebhookSettings,
): Promise<Webhook> {
  if (!namePattern.test(name)) {
    const reason = 'must be 1 to 64 lower-case letters, digits, dots, hyphens and underscores'
    throw new RegistryRefusal('body-invalid', { field: 'name', reason })
  }
  checkUrl(webhooks.sender, settings.url)
  await metadata.transaction(async (tables) => {
    await checkStillOpen(tables, accountId)
    const isAdded = await tables.webhooks.add(accountId, name, freshSecret(), settings)
    if (!isAdded) throw new RegistryRefusal('webhook-exists', { name })
    const max = webhooks.perAccountMax
    if ((await tables.webhooks.count(accountId)) > max) throw new RegistryRefusal('too-many-webhooks', { max })
  })
  return getWebhook({ metadata }, accountId, name)
}

/** Replaces the settings. An enabled webhook gets what is pending at once. */
export async function updateWebhook(
  { metadata, webhooks }: ChangeNeeds,
  webhook: Webhook,
  settings: WebhookSettings,
  { rotatesSecret }: { readonly rotatesSecret: boolean },
): Promise<Webhook> {
  checkUrl(webhooks.sender, settings.url)
  await metadata.transaction(async (tables) => {
    await checkStillOpen(tables, webhook.accountId)
    await tables.webhooks.update(webhook, settings, rotatesSecret ? freshSecret() : undefined)
  })
  return getWebhook({ metadata }, webhook.accountId, webhook.name)
}

const deliveriesAtOnce = 500

/** Removes the webhook and its deliveries. If it is interrupted, the webhook is disabled, and can be deleted again. */
export async function deleteWebhook(
  { metadata }: { readonly metadata: Pick<MetadataStore, 'transaction'> },
  webhook: Webhook,
): Promise<void> {
  await metadata.transaction(async (tables) => {
    await checkStillOpen(tables, webhook.accountId)
    await tables.webhooks.disable(webhook.id, 'it is being deleted')
  })
  for (let removed = deliveriesAtOnce; removed === deliveriesAtOnce; ) {
    removed = await metadata.transaction(({ webhookDeliveries }) =>
      webhookDeliveries.removeOf(webhook, deliveriesAtOnce),
    )
  }
  await metadata.transaction(({ webhooks }) => webhooks.remove(webhook))
}

/** Sends one event of the type `webhook.test` now, and once. It is neither stored nor repeated. */
export async function testWebhook(
  { webhooks }: { readonly webhooks: WebhookParts },
  webhook: Webhook,
  caller: { readonly origin: string; readonly accountName: string; readonly subject: string; readonly now: number },
): Promise<SendResult> {
  const { subject, now, ...context } = caller
  const event = {
    type: 'webhook.test',
    position: 0,
    accountId: webhook.accountId,
    repository: undefined,
    tag: undefined,
    digest: undefined,
    previousDigest: undefined,
    at: now,
    actor: { subject },
    cause: undefined,
    data: undefined,
  } as const
  const id = `evt_test_${crypto.randomUUID()}`
  return webhooks.sender.send(toMessage(webhook, event, context, id), new AbortController().signal)
}

export async function listDeliveries(
  { metadata }: ReadNeeds,
  webhook: Webhook,
  state: DeliveryState | undefined,
  { before, limit }: { readonly before: RowId | undefined; readonly limit: number },
): Promise<Page<Delivery>> {
  if (limit === 0) return { items: [], hasMore: false }
  return toPage(await metadata.webhookDeliveries.list(webhook, state, before, limit + 1), limit)
}

/** Makes a delivery pending again that has been delivered or given up. */
export async function retryDelivery(
  { metadata }: { readonly metadata: Pick<MetadataStore, 'transaction'> },
  webhook: Webhook,
  id: RowId,
): Promise<void> {
  const isFound = await metadata.transaction(async (tables) => {
    await checkStillOpen(tables, webhook.accountId)
    return tables.webhookDeliveries.retry(webhook, id)
  })
  if (!isFound) throw new RegistryRefusal('delivery-unknown', { id })
}

function checkUrl(sender: WebhookSender, url: string): void {
  const reason = sender.findFault(url)
  if (reason !== undefined) throw new RegistryRefusal('body-invalid', { field: 'url', reason })
}

/** In the form of Standard Webhooks. */
function freshSecret(): string {
  return `whsec_${crypto.getRandomValues(new Uint8Array(secretBytes)).toBase64()}`
}
