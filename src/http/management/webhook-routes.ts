import { json, type Route } from '../route.ts'
import {
  getDeliveries,
  getOneWebhook,
  getWebhooks,
  newWebhookBody,
  postRetry,
  postTest,
  postWebhook,
  putWebhook,
  removeWebhook,
  webhookBody,
  webhooksPath,
} from './webhooks.ts'

const one = `${webhooksPath}/{webhook}`
const operator = { access: 'enabled account', right: 'operate' } as const

export const webhookRoutes: readonly Route[] = [
  {
    operationId: 'getWebhooks',
    method: 'GET',
    pattern: webhooksPath,
    ...operator,
    handle: getWebhooks,
    summary: 'List the webhooks of the account',
    parameters: ['n', 'last'],
    answers: {
      200: { description: 'The webhooks.', headers: { Link: 'sometimes' }, content: json('WebhooksResponse') },
    },
    refusals: ['page-size-invalid'],
  },
  {
    operationId: 'postWebhook',
    method: 'POST',
    pattern: webhooksPath,
    ...operator,
    handle: postWebhook,
    summary: 'Create a webhook',
    description:
      'From now on, the events of the account are sent to the URL as signed POST requests. Only this answer contains the secret for the signatures.',
    requestBody: newWebhookBody,
    answers: {
      201: {
        description: 'The webhook with its secret.',
        headers: { 'Cache-Control': 'always', Location: 'always' },
        content: json('Webhook'),
      },
    },
    refusals: ['body-invalid', 'webhook-exists', 'too-many-webhooks'],
  },
  {
    operationId: 'getWebhook',
    method: 'GET',
    pattern: one,
    ...operator,
    handle: getOneWebhook,
    summary: 'Get a webhook, without its secret',
    answers: { 200: { description: 'The webhook.', content: json('Webhook') } },
    refusals: ['webhook-unknown'],
  },
  {
    operationId: 'putWebhook',
    method: 'PUT',
    pattern: one,
    ...operator,
    handle: putWebhook,
    summary: 'Replace the settings of a webhook',
    description: 'What waits for a delivery is sent at once. This also enables a webhook that the server has disabled.',
    requestBody: webhookBody,
    answers: {
      200: { description: 'The webhook.', headers: { 'Cache-Control': 'always' }, content: json('Webhook') },
    },
    refusals: ['body-invalid', 'webhook-unknown'],
  },
  {
    operationId: 'deleteWebhook',
    method: 'DELETE',
    pattern: one,
    ...operator,
    handle: removeWebhook,
    summary: 'Delete a webhook with its deliveries',
    answers: { 204: { description: 'The webhook is deleted.' } },
    refusals: ['webhook-unknown'],
  },
  {
    operationId: 'postWebhookTest',
    method: 'POST',
    pattern: `${one}/test`,
    ...operator,
    handle: postTest,
    summary: 'Send an event of the type `webhook.test` now, and tell the result',
    answers: { 200: { description: 'The result.', content: json('WebhookTestResponse') } },
    refusals: ['webhook-unknown'],
  },
  {
    operationId: 'getWebhookDeliveries',
    method: 'GET',
    pattern: `${one}/deliveries`,
    ...operator,
    handle: getDeliveries,
    summary: 'List the deliveries of a webhook, the newest first',
    description:
      'A dead delivery was given up after `webhooks.give_up`. Finished deliveries are kept for `events.keep`.',
    parameters: ['deliveryState', 'n', 'last'],
    answers: {
      200: {
        description: 'The deliveries.',
        headers: { Link: 'sometimes' },
        content: json('WebhookDeliveriesResponse'),
      },
    },
    refusals: ['webhook-unknown', 'page-size-invalid', 'body-invalid'],
  },
  {
    operationId: 'postWebhookRedelivery',
    method: 'POST',
    pattern: `${one}/deliveries/{delivery}/redeliver`,
    ...operator,
    handle: postRetry,
    summary: 'Send a delivery again that was delivered or given up',
    answers: { 202: { description: 'The delivery is pending.' } },
    refusals: ['webhook-unknown', 'delivery-unknown'],
  },
]
