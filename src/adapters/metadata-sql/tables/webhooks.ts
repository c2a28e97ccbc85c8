import type { EventType } from '../../../ports/events.ts'
import type { RowId } from '../../../ports/row-id.ts'
import type { Webhook, WebhookFormat, WebhookSettings, Webhooks } from '../../../ports/webhooks.ts'
import type { Queryable } from '../database.ts'

export interface WebhookRow {
  readonly id: number
  readonly account_id: number
  readonly name: string
  readonly url: string
  readonly format: string
  readonly types: string
  readonly repositories: string
  readonly secret: string
  readonly is_enabled: number
  readonly disabled_because: string | null
  readonly created_at: number
  readonly since: number
}

export const webhookColumns =
  'id, account_id, name, url, format, types, repositories, secret, is_enabled, disabled_because, created_at, since'

// The key of webhooks (name), in its order.
const list = `SELECT ${webhookColumns} FROM webhooks WHERE account_id = $1 AND name > $2 ORDER BY name LIMIT $3`
const find = `SELECT ${webhookColumns} FROM webhooks WHERE account_id = $1 AND name = $2`
const count = 'SELECT count(*) AS count FROM webhooks WHERE account_id = $1'

const listEnabled = `
SELECT ${webhookColumns} FROM webhooks
WHERE account_id IN (SELECT CAST(each.value AS {number}) FROM {each text $1}) AND is_enabled = 1`

const add = `
INSERT INTO webhooks (account_id, name, url, format, types, repositories, secret, is_enabled, created_at, since, leased_until, epoch)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, {now}, coalesce((SELECT passed FROM event_feed WHERE id = 1), 0), 0, 0)
ON CONFLICT (account_id, name) DO NOTHING`

// The lease of another server ends: it may be about to send to the old address.
const update = `
UPDATE webhooks SET url = $3, format = $4, types = $5, repositories = $6, is_enabled = $7, secret = coalesce($8, secret),
  disabled_because = NULL, epoch = epoch + 1, leased_until = 0, due_at = CASE WHEN $7 = 1 THEN {now} END
WHERE account_id = $1 AND id = $2`
const makeDue = 'UPDATE webhook_queues SET next_at = {now}, failing_since = NULL, attempts = 0 WHERE webhook_id = $1'

const disable = `
UPDATE webhooks SET is_enabled = 0, disabled_because = $2, epoch = epoch + 1, leased_until = 0, due_at = NULL WHERE id = $1`

export class SqlWebhooks implements Webhooks {
  readonly #queries: Queryable

  constructor(queries: Queryable) {
    this.#queries = queries
  }

  async list(accountId: RowId, after: string | undefined, limit: number): Promise<Webhook[]> {
    return (await this.#queries.all<WebhookRow>(list, [accountId, after ?? '', limit])).map(toWebhook)
  }

  async find(accountId: RowId, name: string): Promise<Webhook | undefined> {
    const row = await this.#queries.first<WebhookRow>(find, [accountId, name])
    return row && toWebhook(row)
  }

  async count(accountId: RowId): Promise<number> {
    return (await this.#queries.first<{ count: number }>(count, [accountId]))?.count ?? 0
  }

  async listEnabled(accountIds: readonly RowId[]): Promise<Webhook[]> {
    if (accountIds.length === 0) return []
    const rows = await this.#queries.all<WebhookRow>(listEnabled, [JSON.stringify(accountIds.map(String))])
    return rows.map(toWebhook).toSorted((one, other) => one.id - other.id)
  }

  async add(accountId: RowId, name: string, secret: string, settings: WebhookSettings): Promise<boolean> {
    const { url, format, types, repositories, isEnabled } = toValues(settings)
    return (await this.#queries.run(add, [accountId, name, url, format, types, repositories, secret, isEnabled])) > 0
  }

  async update({ accountId, id }: Webhook, settings: WebhookSettings, secret: string | undefined): Promise<void> {
    const { url, format, types, repositories, isEnabled } = toValues(settings)
    const values = [accountId, id, url, format, types, repositories, isEnabled, secret ?? null]
    await this.#queries.run(update, values)
    await this.#queries.run(makeDue, [id])
  }

  async disable(id: RowId, because: string): Promise<void> {
    await this.#queries.run(disable, [id, because])
  }

  async remove({ accountId, id }: Webhook): Promise<void> {
    await this.#queries.run('DELETE FROM webhooks WHERE account_id = $1 AND id = $2', [accountId, id])
  }
}

function toValues({ url, format, types, repositories, isEnabled }: WebhookSettings) {
  return {
    url,
    format,
    types: JSON.stringify(types),
    repositories: JSON.stringify(repositories),
    isEnabled: isEnabled ? 1 : 0,
  }
}

export function toWebhook(row: WebhookRow): Webhook {
  return {
    id: row.id,
    accountId: row.account_id,
    name: row.name,
    url: row.url,
    format: row.format as WebhookFormat,
    types: JSON.parse(row.types) as EventType[],
    repositories: JSON.parse(row.repositories),
    secret: row.secret,
    isEnabled: row.is_enabled === 1,
    disabledBecause: row.disabled_because ?? undefined,
    createdAt: row.created_at,
    since: row.since,
  }
}
