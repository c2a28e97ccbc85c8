import { matchesPattern } from '../oci/repository-pattern.ts'
import type { RegistryEvent } from '../ports/events.ts'
import type { WebhookMessage } from '../ports/webhook-sender.ts'
import type { Webhook, WebhookFormat } from '../ports/webhooks.ts'

/** The event of `POST /webhooks/{webhook}/test`. It is never stored. */
export type TestEvent = Omit<RegistryEvent, 'type'> & { readonly type: 'webhook.test' }

export interface MessageContext {
  /** The address of the registry as clients know it, without a path. */
  readonly origin: string
  readonly accountName: string
}

/** What the notifications of Docker's registry call the change. A type that is not here cannot be told in that format. */
const actions: Readonly<Partial<Record<string, 'push' | 'delete'>>> = {
  'manifest.pushed': 'push',
  'tag.created': 'push',
  'tag.moved': 'push',
  'manifest.deleted': 'delete',
  'tag.deleted': 'delete',
}

export function isWanted({ types, repositories, format, since }: Webhook, event: RegistryEvent): boolean {
  if (event.position <= since) return false
  if (format === 'distribution' && actions[event.type] === undefined) return false
  if (types.length > 0 && !types.includes(event.type)) return false
  if (repositories.length === 0) return true
  const { repository } = event
  return repository !== undefined && repositories.some((pattern) => matchesPattern(pattern, repository))
}

/** The id and the bytes are the same for every attempt. */
export function toMessage(
  { url, secret, format }: Pick<Webhook, 'url' | 'secret' | 'format'>,
  event: RegistryEvent | TestEvent,
  context: MessageContext,
  id: string,
): WebhookMessage {
  return { url, secret, id, ...renderers[format](event, id, context) }
}

type Rendered = Pick<WebhookMessage, 'contentType' | 'body'>
type Renderer = (event: RegistryEvent | TestEvent, id: string, context: MessageContext) => Rendered

const renderers: Readonly<Record<WebhookFormat, Renderer>> = { cloudevents: toCloudEvent, distribution: toNotification }

/** CloudEvents 1.0.2, structured content mode, JSON format. */
function toCloudEvent(event: RegistryEvent | TestEvent, id: string, context: MessageContext): Rendered {
  const { repository, tag, digest, previousDigest, actor, cause, data } = event
  const subject = repository === undefined ? undefined : subjectOf(repository, tag, digest)
  const body = {
    specversion: '1.0',
    id,
    source: `${context.origin}/accounts/${context.accountName}`,
    type: `dev.berth.${event.type}`,
    ...(subject !== undefined && { subject }),
    time: new Date(event.at).toISOString(),
    datacontenttype: 'application/json',
    data: { repository, tag, digest, previousDigest, actor: actor.subject, cause, ...data },
  }
  return { contentType: 'application/cloudevents+json; charset=utf-8', body: JSON.stringify(body) }
}

function subjectOf(repository: string, tag: string | undefined, digest: string | undefined): string {
  if (tag !== undefined) return `${repository}:${tag}`
  return digest === undefined ? repository : `${repository}@${digest}`
}

/** https://distribution.github.io/distribution/about/notifications/ */
function toNotification(event: RegistryEvent | TestEvent, id: string, context: MessageContext): Rendered {
  const { repository = '', tag, data } = event
  const digest = event.digest ?? event.previousDigest
  const [sizeBytes, mediaType] = [data?.['sizeBytes'], data?.['mediaType']]
  const target = {
    ...(mediaType !== undefined && { mediaType }),
    ...(sizeBytes !== undefined && { size: sizeBytes, length: sizeBytes }),
    digest,
    repository,
    url: `${context.origin}/v2/${repository}/manifests/${digest}`,
    tag,
  }
  const notification = {
    id,
    timestamp: new Date(event.at).toISOString(),
    action: actions[event.type] ?? event.type,
    target,
    request: {},
    actor: { name: event.actor.subject },
    source: { addr: new URL(context.origin).host },
  }
  return {
    contentType: 'application/vnd.docker.distribution.events.v1+json',
    body: JSON.stringify({ events: [notification] }),
  }
}
