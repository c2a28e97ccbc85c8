import { andThen } from '../../../lib/and-then.ts'
import type { Account, AccountContent, Accounts } from '../../../ports/accounts.ts'
import type { Awaitable } from '../../../ports/awaitable.ts'
import type { RowId } from '../../../ports/row-id.ts'
import type { Queryable } from '../database.ts'
import { type QuotaRow, toQuota } from './quotas.ts'

interface AccountRow extends QuotaRow {
  readonly id: number
  readonly name: string
  readonly state: Account['state']
  readonly read_only: number
  readonly has_immutable_tags: number
  readonly untagged_ms: number | null
}

// The primary key of marks. `state` is `disabled` while the account is suspended; see migration 4.
const columns = `a.id, a.name, a.has_immutable_tags, a.untagged_ms, a.quota_bytes, a.quota_repositories, a.quota_tags,
  CASE WHEN a.resume_state IS NULL THEN a.state ELSE 'suspended' END AS state,
  (SELECT count(*) FROM marks m WHERE m.name = 'read-only') AS read_only`

const findByName = `SELECT ${columns} FROM accounts a WHERE a.name = $1`

function toAccount(row: AccountRow): Account {
  return {
    id: row.id,
    name: row.name,
    state: row.state,
    isReadOnly: row.read_only > 0,
    hasImmutableTags: row.has_immutable_tags === 1,
    untaggedMs: row.untagged_ms ?? undefined,
    quota: toQuota(row),
  }
}

export class SqlAccounts implements Accounts {
  readonly #queries: Queryable

  constructor(queries: Queryable) {
    this.#queries = queries
  }

  find(name: string): Awaitable<Account | undefined> {
    return andThen(this.#queries.lookUp<AccountRow>(findByName, [name]), (row) => row && toAccount(row))
  }

  async findLocked(id: RowId): Promise<Account | undefined> {
    const row = await this.#queries.first<AccountRow>(
      `SELECT ${columns} FROM accounts a WHERE a.id = $1 {for key share a}`,
      [id],
    )
    return row && toAccount(row)
  }

  async ensure(name: string): Promise<Account> {
    const found = await this.find(name)
    if (found !== undefined) return found
    await this.#queries.run(
      `INSERT INTO accounts (name, state, created_at, changed_at) VALUES ($1, 'enabled', {now}, {now})
       ON CONFLICT (name) DO NOTHING`,
      [name],
    )
    return this.#get(name)
  }

  async setState(name: string, state: 'enabled' | 'disabled'): Promise<Account> {
    if (state === 'enabled') {
      await this.#queries.run(
        `INSERT INTO accounts (name, state, created_at, changed_at) VALUES ($1, 'enabled', {now}, {now})
         ON CONFLICT (name) DO UPDATE SET state = 'enabled', changed_at = excluded.changed_at
         WHERE accounts.state <> 'enabled' AND accounts.resume_state IS NULL`,
        [name],
      )
      return this.#get(name)
    }
    await this.#queries.run(
      `INSERT INTO accounts (name, state, created_at, changed_at) VALUES ($1, 'disabled', {now}, {now})
       ON CONFLICT (name) DO UPDATE SET state = 'disabled', changed_at = excluded.changed_at,
         resume_state = CASE WHEN accounts.resume_state IS NULL THEN NULL ELSE 'disabled' END
       WHERE accounts.state <> 'disabled' OR accounts.resume_state = 'enabled'`,
      [name],
    )
    await this.#waitForTransactions(name)
    return this.#get(name)
  }

  async suspend(name: string): Promise<void> {
    await this.#queries.run(
      `INSERT INTO accounts (name, state, resume_state, created_at, changed_at)
       VALUES ($1, 'disabled', 'disabled', {now}, {now})
       ON CONFLICT (name) DO UPDATE SET state = 'disabled', resume_state = accounts.state,
         changed_at = excluded.changed_at
       WHERE accounts.resume_state IS NULL`,
      [name],
    )
    await this.#waitForTransactions(name)
  }

  async resume(name: string): Promise<Account | undefined> {
    await this.#queries.run(
      `UPDATE accounts SET state = resume_state, resume_state = NULL, changed_at = {now}
       WHERE name = $1 AND resume_state IS NOT NULL AND deleting_since IS NULL`,
      [name],
    )
    return this.find(name)
  }

  /**
   * Waits for all transactions that saw the account enabled. `findLocked` does not block the update of the state, so they may
   * still be running, but it blocks `for update`.
   */
  async #waitForTransactions(name: string): Promise<void> {
    await this.#queries.run('SELECT id FROM accounts a WHERE name = $1 {for update a}', [name])
  }

  async #get(name: string): Promise<Account> {
    const account = await this.find(name)
    if (account === undefined) throw new Error(`the account ${name} has no row after it was written`)
    return account
  }

  async list(after: string | undefined, limit: number): Promise<Account[]> {
    const rows = await this.#queries.all<AccountRow>(
      `SELECT ${columns} FROM accounts a WHERE a.name > $1 ORDER BY a.name LIMIT $2`,
      [after ?? '', limit],
    )
    return rows.map(toAccount)
  }

  async measure(id: RowId): Promise<AccountContent> {
    const row = await this.#queries.first<AccountContent>(
      `SELECT (SELECT COUNT(*) FROM repositories WHERE account_id = $1) AS repositories,
              (SELECT COUNT(*) FROM manifests WHERE account_id = $1) AS manifests,
              (SELECT COUNT(*) FROM tags WHERE account_id = $1) AS tags,
              (SELECT COUNT(*) FROM blobs WHERE account_id = $1) AS blobs,
              (SELECT CAST(COALESCE(SUM(size_bytes), 0) AS bigint) FROM blobs WHERE account_id = $1) AS "blobBytes"`,
      [id],
    )
    if (row === undefined) throw new Error('a sum has no row')
    return row
  }
}
