import { type TSchema, Type } from 'typebox'
import { eventTypes } from '../../registry/event-types.ts'
import { dateTime, digest } from './formats.ts'

// The bodies of the routes for events and webhooks.

const orNull = <Schema extends TSchema>(schema: Schema, description: string) =>
  Type.Union([schema, Type.Null()], { description })
const eventType = Type.Enum(Object.keys(eventTypes))
const text = Type.String()

const RegistryEvent = Type.Object({
  id: Type.String({ description: 'The id that webhooks send too.' }),
  type: eventType,
  repository: orNull(text, 'Null: the event concerns no repository.'),
  tag: orNull(text, 'Null: the event concerns no tag.'),
  digest: orNull(digest, 'The manifest that was pushed or removed, or to which the tag points now.'),
  previousDigest: orNull(digest, 'The manifest to which the tag pointed before.'),
  at: dateTime,
  actor: Type.Object({
    subject: Type.String({ description: 'For example the name of the user.' }),
    credential: orNull(text, 'Identifies the API key or token without revealing it.'),
    address: orNull(text, 'The address of the client, if it was recorded.'),
  }),
  cause: orNull(text, 'For a tag: `push`, `restore`, `tag deleted` or `manifest deleted`.'),
  data: orNull(Type.Object({}, { additionalProperties: true }), 'More about the change.'),
})

const EventsResponse = Type.Object({
  events: Type.Array(Type.Ref('#/components/schemas/RegistryEvent'), { description: 'The newest first.' }),
})

const settings = {
  url: Type.String({ maxLength: 2048 }),
  format: Type.Enum(['cloudevents', 'distribution']),
  types: Type.Array(eventType, { description: 'Only events of these types. Empty: all.', maxItems: 64 }),
  repositories: Type.Array(text, {
    description:
      'Only events of repositories that match one of these patterns, in which `*` stands for any text. Empty: all.',
    maxItems: 64,
  }),
  enabled: Type.Boolean(),
}

const optional = {
  format: Type.Optional(settings.format),
  types: Type.Optional(settings.types),
  repositories: Type.Optional(settings.repositories),
  enabled: Type.Optional(settings.enabled),
}

const NewWebhookRequest = Type.Object({ name: text, url: settings.url, ...optional }, { additionalProperties: false })

const WebhookRequest = Type.Object(
  {
    url: settings.url,
    ...optional,
    rotateSecret: Type.Optional(Type.Boolean({ description: 'Replace the secret. The answer contains the new one.' })),
  },
  { additionalProperties: false, description: 'What is left out gets its default.' },
)

const webhook = {
  name: text,
  ...settings,
  disabledBecause: orNull(text, 'Why the server has disabled the webhook. Null: it has not.'),
  createdAt: dateTime,
}

const Webhook = Type.Object({
  ...webhook,
  secret: Type.Optional(Type.String({ description: 'Only in the answer to the request that created the secret.' })),
})

const WebhooksResponse = Type.Object({
  webhooks: Type.Array(Type.Ref('#/components/schemas/Webhook'), { description: 'Ordered by name.' }),
})

const WebhookTestResponse = Type.Object({
  delivered: Type.Boolean({ description: 'Whether the receiver answered with 2xx.' }),
  outcome: Type.String({ description: '`status 200`, or what failed.' }),
})

const WebhookDelivery = Type.Object({
  id: Type.String(),
  event: Type.Ref('#/components/schemas/RegistryEvent'),
  state: Type.Enum(['pending', 'delivered', 'dead']),
  attempts: Type.Integer({ minimum: 0 }),
  createdAt: dateTime,
  triedAt: orNull(dateTime, 'The time of the last attempt.'),
  outcome: orNull(text, 'The result of the last attempt: `status 200`, or what failed.'),
})

const WebhookDeliveriesResponse = Type.Object({
  deliveries: Type.Array(Type.Ref('#/components/schemas/WebhookDelivery'), { description: 'The newest first.' }),
})

export const eventSchemas = {
  RegistryEvent,
  EventsResponse,
  NewWebhookRequest,
  WebhookRequest,
  Webhook,
  WebhooksResponse,
  WebhookTestResponse,
  WebhookDelivery,
  WebhookDeliveriesResponse,
} as const
