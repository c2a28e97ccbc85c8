import type { RepositoryPattern } from '../oci/repository-pattern.ts'
import type { EventType, RegistryEvent } from './events.ts'
import type { RowId } from './row-id.ts'

/** `distribution`: the notifications of Docker's registry. */
export type WebhookFormat = 'cloudevents' | 'distribution'

export interface WebhookSettings {
  readonly url: string
  readonly format: WebhookFormat
  /** Empty: all types. */
  readonly types: readonly EventType[]
  /** Empty: all repositories, and events of no repository. */
  readonly repositories: readonly RepositoryPattern[]
  readonly isEnabled: boolean
}

export interface Webhook extends WebhookSettings {
  readonly id: RowId
  readonly accountId: RowId
  /** Unique within the account. */
  readonly name: string
  /** The key of the signatures. It must never get into a log or an answer, except when it is created. */
  readonly secret: string
  /** Why the server has disabled the webhook. Undefined if a caller has, or if it is enabled. */
  readonly disabledBecause: string | undefined
  readonly createdAt: number
  /** The position of the last event before the webhook was created. */
  readonly since: number
}

/** The webhooks of accounts. */
export interface Webhooks {
  list(accountId: RowId, after: string | undefined, limit: number): Promise<Webhook[]>
  find(accountId: RowId, name: string): Promise<Webhook | undefined>
  count(accountId: RowId): Promise<number>
  /** The enabled webhooks of these accounts, in the order of their ids. */
  listEnabled(accountIds: readonly RowId[]): Promise<Webhook[]>

  // The following methods are for transactions.

  /** False if the account has a webhook with this name. It gets the events after the last one that was passed on. */
  add(accountId: RowId, name: string, secret: string, settings: WebhookSettings): Promise<boolean>
  /** Without `secret`, the secret does not change. If it is enabled, what is pending is due at once. */
  update(webhook: Webhook, settings: WebhookSettings, secret: string | undefined): Promise<void>
  /** Disables the webhook after an attempt, until a caller enables it. */
  disable(id: RowId, because: string): Promise<void>
  /** Removes the webhook. Its deliveries must be removed before, in portions. */
  remove(webhook: Webhook): Promise<void>
}

export type DeliveryState = 'pending' | 'delivered' | 'dead'

/** One event for one webhook. */
export interface Delivery {
  readonly id: RowId
  readonly webhookId: RowId
  /** Empty for an event of no repository. */
  readonly repository: string
  readonly event: RegistryEvent
  readonly state: DeliveryState
  readonly attempts: number
  readonly createdAt: number
  readonly triedAt: number | undefined
  /** The result of the last attempt: `status 200`, or what failed. */
  readonly outcome: string | undefined
}

/** The exclusive, time-limited right to deliver for a webhook. `epoch` is its fencing token. */
export interface DeliveryLease {
  readonly webhook: Webhook
  readonly epoch: number
}

/** Deliveries of one webhook and one repository are made in order, so the first one that fails delays the others. */
export interface DeliveryQueue {
  readonly repository: string
  readonly attempts: number
  /** Since when every attempt has failed, as a duration. Undefined: the last attempt did not fail. */
  readonly failingMs: number | undefined
}

/**
 * The deliveries of webhooks. `Events` are passed on to the deliveries of each webhook that wants them, in one transaction with
 * `Events.setPassed`. So each event becomes exactly one delivery of each webhook. A delivery is pending until an attempt
 * succeeds, or until it is given up: then it is dead.
 */
export interface WebhookDeliveries {
  /** At most `limit` deliveries before `before`, the newest first; of one state, or of all. */
  list(
    webhook: Webhook,
    state: DeliveryState | undefined,
    before: RowId | undefined,
    limit: number,
  ): Promise<Delivery[]>

  /** The ids of at most `limit` webhooks of which a delivery is due, and which no server delivers. */
  listDue(limit: number): Promise<RowId[]>

  /** At most `limit` queues of the webhook that are due, those that have waited longest first. */
  listQueues(webhookId: RowId, limit: number): Promise<DeliveryQueue[]>

  /** At most `limit` pending deliveries of the queue, in order. */
  listPending(webhookId: RowId, repository: string, limit: number): Promise<Delivery[]>

  // The following methods are for transactions. All of them lock the webhook first.

  /** Adds pending deliveries to the end of the queues. They are due at once unless their queue waits after a failure. */
  add(webhook: Webhook, events: readonly RegistryEvent[]): Promise<void>

  /** Leases the webhook. Undefined if it is not due. */
  claim(webhookId: RowId, leaseMs: number): Promise<DeliveryLease | undefined>

  /** Extends the lease. False if it has ended or the webhook was disabled: then nothing more may be sent or recorded. */
  renew(lease: DeliveryLease, leaseMs: number): Promise<boolean>

  /** Ends the lease. The webhook is due when the first of its queues is, but not before `pauseMs`. */
  release(lease: DeliveryLease, pauseMs: number): Promise<void>

  /** After `renew`. The attempt succeeded, or it is the last one. The next delivery of the queue is due. */
  finish(delivery: Delivery, state: 'delivered' | 'dead', outcome: string): Promise<void>

  /** After `renew`. The attempt failed. The queue is due after `delayMs`. */
  postpone(delivery: Delivery, delayMs: number, outcome: string): Promise<void>

  /** Makes a finished delivery pending again, at its old place. False if there is no such delivery. */
  retry(webhook: Webhook, id: RowId): Promise<boolean>

  /** Removes at most `limit` finished deliveries that are at least `keepMs` old. Returns their number. */
  removeOld(keepMs: number, limit: number): Promise<number>

  /** Removes at most `limit` deliveries of the webhook. Returns their number. */
  removeOf(webhook: Webhook, limit: number): Promise<number>
}
