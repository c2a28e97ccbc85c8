import type { Policies, PolicyKind, PolicyMarks, StoredPolicy } from '../../../ports/policies.ts'
import type { RowId } from '../../../ports/row-id.ts'
import type { Queryable } from '../database.ts'

interface PolicyRow {
  readonly body: string
  readonly changed_at: number
  readonly changed_by: string
}

const find = 'SELECT body, changed_at, changed_by FROM policies WHERE kind = $1 AND account_id = $2'

// Index policies_by_kind, in its order.
const listAccounts = 'SELECT account_id FROM policies WHERE kind = $1 AND account_id > $2 ORDER BY account_id LIMIT $3'

const set = `
INSERT INTO policies (kind, account_id, body, changed_at, changed_by) VALUES ($1, $2, $3, {now}, $4)
ON CONFLICT (account_id, kind) DO UPDATE
SET body = excluded.body, changed_at = excluded.changed_at, changed_by = excluded.changed_by`

export class SqlPolicies implements Policies {
  readonly #queries: Queryable

  constructor(queries: Queryable) {
    this.#queries = queries
  }

  async find(accountId: RowId, kind: PolicyKind): Promise<StoredPolicy | undefined> {
    const row = await this.#queries.lookUp<PolicyRow>(find, [kind, accountId])
    return row && { body: row.body, changedAt: row.changed_at, changedBy: row.changed_by }
  }

  async listAccounts(kind: PolicyKind, after: RowId | undefined, limit: number): Promise<RowId[]> {
    const rows = await this.#queries.all<{ account_id: number }>(listAccounts, [kind, after ?? 0, limit])
    return rows.map((row) => row.account_id)
  }

  async lock(accountId: RowId): Promise<void> {
    await this.#queries.run('SELECT id FROM accounts a WHERE id = $1 {for update a}', [accountId])
  }

  async set(accountId: RowId, kind: PolicyKind, body: string, changedBy: string): Promise<void> {
    await this.#queries.run(set, [kind, accountId, body, changedBy])
  }

  async remove(accountId: RowId, kind: PolicyKind): Promise<boolean> {
    return (await this.#queries.run('DELETE FROM policies WHERE kind = $1 AND account_id = $2', [kind, accountId])) > 0
  }

  async setMarks(accountId: RowId, { hasImmutableTags, untaggedMs }: PolicyMarks): Promise<void> {
    const values = [accountId, hasImmutableTags ? 1 : 0, untaggedMs ?? null]
    await this.#queries.run('UPDATE accounts SET has_immutable_tags = $2, untagged_ms = $3 WHERE id = $1', values)
  }
}
