import type { RegistryEvent } from '../../../ports/events.ts'
import type { RowId } from '../../../ports/row-id.ts'
import type {
  Delivery,
  DeliveryLease,
  DeliveryQueue,
  DeliveryState,
  Webhook,
  WebhookDeliveries,
} from '../../../ports/webhooks.ts'
import type { Queryable } from '../database.ts'
import { toWebhook, type WebhookRow, webhookColumns } from './webhooks.ts'

interface DeliveryRow {
  readonly id: number
  readonly webhook_id: number
  readonly repository: string
  readonly event: string
  readonly state: string
  readonly attempts: number
  readonly created_at: number
  readonly tried_at: number | null
  readonly outcome: string | null
}

interface QueueRow {
  readonly repository: string
  readonly attempts: number
  readonly failing_ms: number | null
}

const columns = 'id, webhook_id, repository, event, state, attempts, created_at, tried_at, outcome'

// Indexes webhook_deliveries_of_webhook and webhook_deliveries_by_state, backwards.
const list = `SELECT ${columns} FROM webhook_deliveries WHERE webhook_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3`
const listOfState = list.replace('webhook_id = $1', 'webhook_id = $1 AND state = $4')

// Index webhooks_by_due, in its order.
const listDue = 'SELECT id FROM webhooks WHERE due_at <= {now} ORDER BY due_at LIMIT $1'
// Index webhook_queues_by_next, in its order.
const listQueues = `
SELECT repository, attempts, {now} - failing_since AS failing_ms FROM webhook_queues
WHERE webhook_id = $1 AND next_at <= {now} ORDER BY next_at LIMIT $2`
// Index webhook_deliveries_pending, in its order.
const listPending = `
SELECT ${columns} FROM webhook_deliveries WHERE webhook_id = $1 AND repository = $2 AND state = 'pending' ORDER BY id LIMIT $3`

const makeDue = `
UPDATE webhooks SET due_at = CASE WHEN leased_until > {now} THEN due_at ELSE {now} END
WHERE id = $1 AND account_id = $2 AND is_enabled = 1`
const addDeliveries = `
INSERT INTO webhook_deliveries (webhook_id, repository, position, event, state, attempts, created_at)
SELECT $1, each.value ->> 'repository', CAST(each.value ->> 'position' AS bigint), each.value ->> 'event', 'pending', 0, {now}
FROM {each $2}`
const addQueues = `
INSERT INTO webhook_queues (webhook_id, repository, next_at, attempts) SELECT $1, each.value, {now}, 0 FROM {each text $2}
WHERE true ON CONFLICT (webhook_id, repository) DO NOTHING`

const claim = `
UPDATE webhooks SET epoch = epoch + 1, leased_until = {now} + $2, due_at = {now} + $2
WHERE id = $1 AND due_at <= {now} AND is_enabled = 1 RETURNING ${webhookColumns}, epoch`
const renew = `
UPDATE webhooks SET leased_until = {now} + $3, due_at = {now} + $3 WHERE id = $1 AND epoch = $2 AND is_enabled = 1`
const release = `
UPDATE webhooks SET leased_until = CASE WHEN $3 > 0 THEN {now} + $3 ELSE 0 END,
  due_at = (SELECT CASE WHEN min(next_at) < {now} + $3 THEN {now} + $3 ELSE min(next_at) END
            FROM webhook_queues WHERE webhook_id = $1)
WHERE id = $1 AND epoch = $2`

const finish = `
UPDATE webhook_deliveries SET state = $2, attempts = attempts + 1, tried_at = {now}, finished_at = {now}, outcome = $3
WHERE id = $1 AND state = 'pending'`
const dropQueue = `
DELETE FROM webhook_queues WHERE webhook_id = $1 AND repository = $2 AND NOT EXISTS (
  SELECT 1 FROM webhook_deliveries d WHERE d.webhook_id = $1 AND d.repository = $2 AND d.state = 'pending')`
// A dead delivery is no success: the next one that fails is dead at once.
const advanceQueue = `
UPDATE webhook_queues SET next_at = {now}, attempts = 0, failing_since = CASE WHEN $3 = 1 THEN NULL ELSE failing_since END
WHERE webhook_id = $1 AND repository = $2`
const note = 'UPDATE webhook_deliveries SET attempts = attempts + 1, tried_at = {now}, outcome = $2 WHERE id = $1'
const postponeQueue = `
UPDATE webhook_queues SET next_at = {now} + $3, attempts = attempts + 1, failing_since = coalesce(failing_since, {now})
WHERE webhook_id = $1 AND repository = $2`
const retry = `
UPDATE webhook_deliveries SET state = 'pending', finished_at = NULL WHERE webhook_id = $1 AND id = $2 AND state <> 'pending'
RETURNING repository`

// Index webhook_deliveries_by_end, in its order.
const removeOld = `
DELETE FROM webhook_deliveries WHERE id IN (
  SELECT d.id FROM webhook_deliveries d WHERE d.finished_at <= {now} - $1 ORDER BY d.finished_at LIMIT $2)`
const removeOf = `
DELETE FROM webhook_deliveries WHERE id IN (
  SELECT d.id FROM webhook_deliveries d WHERE d.webhook_id = $1 ORDER BY d.id LIMIT $2)`

export class SqlWebhookDeliveries implements WebhookDeliveries {
  readonly #queries: Queryable

  constructor(queries: Queryable) {
    this.#queries = queries
  }

  async list(
    { id }: Webhook,
    state: DeliveryState | undefined,
    before = Number.MAX_SAFE_INTEGER,
    limit: number,
  ): Promise<Delivery[]> {
    const values = [id, before, limit]
    const rows = await (state === undefined
      ? this.#queries.all<DeliveryRow>(list, values)
      : this.#queries.all<DeliveryRow>(listOfState, [...values, state]))
    return rows.map(toDelivery)
  }

  async listDue(limit: number): Promise<RowId[]> {
    return (await this.#queries.all<{ id: number }>(listDue, [limit])).map(({ id }) => id)
  }

  async listQueues(webhookId: RowId, limit: number): Promise<DeliveryQueue[]> {
    const rows = await this.#queries.all<QueueRow>(listQueues, [webhookId, limit])
    return rows.map(({ repository, attempts, failing_ms: ms }) => ({
      repository,
      attempts,
      failingMs: ms ?? undefined,
    }))
  }

  async listPending(webhookId: RowId, repository: string, limit: number): Promise<Delivery[]> {
    return (await this.#queries.all<DeliveryRow>(listPending, [webhookId, repository, limit])).map(toDelivery)
  }

  async add({ id, accountId }: Webhook, events: readonly RegistryEvent[]): Promise<void> {
    const isDue = await this.#queries.run(makeDue, [id, accountId])
    if (isDue === 0) return
    const rows = events.map((event) => ({
      repository: event.repository ?? '',
      position: event.position,
      event: JSON.stringify(event),
    }))
    await this.#queries.run(addDeliveries, [id, JSON.stringify(rows)])
    const queues = [...new Set(rows.map(({ repository }) => repository))].toSorted()
    await this.#queries.run(addQueues, [id, JSON.stringify(queues)])
  }

  async claim(webhookId: RowId, leaseMs: number): Promise<DeliveryLease | undefined> {
    const [row] = await this.#queries.returning<WebhookRow & { epoch: number }>(claim, [webhookId, leaseMs])
    return row && { webhook: toWebhook(row), epoch: row.epoch }
  }

  async renew({ webhook, epoch }: DeliveryLease, leaseMs: number): Promise<boolean> {
    return (await this.#queries.run(renew, [webhook.id, epoch, leaseMs])) > 0
  }

  async release({ webhook, epoch }: DeliveryLease, pauseMs: number): Promise<void> {
    await this.#queries.run(release, [webhook.id, epoch, pauseMs])
  }

  async finish({ id, webhookId, repository }: Delivery, state: 'delivered' | 'dead', outcome: string): Promise<void> {
    await this.#queries.run(finish, [id, state, outcome])
    await this.#queries.run(advanceQueue, [webhookId, repository, state === 'delivered' ? 1 : 0])
    await this.#queries.run(dropQueue, [webhookId, repository])
  }

  async postpone({ id, webhookId, repository }: Delivery, delayMs: number, outcome: string): Promise<void> {
    await this.#queries.run(note, [id, outcome])
    await this.#queries.run(postponeQueue, [webhookId, repository, delayMs])
  }

  async retry(webhook: Webhook, id: RowId): Promise<boolean> {
    await this.#queries.run(makeDue, [webhook.id, webhook.accountId])
    const [row] = await this.#queries.returning<{ repository: string }>(retry, [webhook.id, id])
    if (row === undefined) return false
    await this.#queries.run(addQueues, [webhook.id, JSON.stringify([row.repository])])
    return true
  }

  async removeOld(keepMs: number, limit: number): Promise<number> {
    return this.#queries.run(removeOld, [keepMs, limit])
  }

  async removeOf({ id }: Webhook, limit: number): Promise<number> {
    return this.#queries.run(removeOf, [id, limit])
  }
}

function toDelivery(row: DeliveryRow): Delivery {
  return {
    id: row.id,
    webhookId: row.webhook_id,
    repository: row.repository,
    event: JSON.parse(row.event) as RegistryEvent,
    state: row.state as DeliveryState,
    attempts: row.attempts,
    createdAt: row.created_at,
    triedAt: row.tried_at ?? undefined,
    outcome: row.outcome ?? undefined,
  }
}
