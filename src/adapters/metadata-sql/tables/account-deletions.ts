import type { AccountDeletions, DyingAccount } from '../../../ports/account-deletions.ts'
import type { RowId } from '../../../ports/row-id.ts'
import type { Queryable } from '../database.ts'
import { putIntoTrash } from './trash.ts'

/** A table with rows of accounts, and a unique key of it. */
interface OwnedTable {
  readonly name: string
  readonly key: string
  /** What its rows refer to. Default: the account. */
  readonly owner?: 'webhook'
}

/** In the order of the removal: a row before the rows that it refers to. `blobs` and `uploads` have objects too. */
const ownedTables: readonly OwnedTable[] = [
  { name: 'manifest_entries', key: 'account_id, manifest_id, digest' },
  { name: 'deleted_entries', key: 'account_id, deleted_id, digest' },
  { name: 'deleted_manifests', key: 'account_id, id' },
  { name: 'tag_pulls', key: 'account_id, repository_id, tag' },
  { name: 'tags', key: 'account_id, repository_id, name' },
  { name: 'manifest_pulls', key: 'account_id, manifest_id' },
  { name: 'untagged_manifests', key: 'account_id, manifest_id' },
  { name: 'manifests', key: 'account_id, id' },
  { name: 'uploads', key: 'account_id, id' },
  { name: 'blob_links', key: 'account_id, repository_id, blob_id' },
  { name: 'blob_queue', key: 'account_id, blob_id' },
  { name: 'blobs', key: 'account_id, id' },
  { name: 'tag_history', key: 'id' },
  { name: 'repository_pulls', key: 'account_id, repository_id' },
  { name: 'repository_usage', key: 'account_id, repository_id' },
  { name: 'repositories', key: 'account_id, id' },
  { name: 'policies', key: 'account_id, kind' },
  { name: 'usage_changes', key: 'id' },
  { name: 'account_usage', key: 'account_id' },
  { name: 'webhook_deliveries', key: 'id', owner: 'webhook' },
  { name: 'webhook_queues', key: 'webhook_id, repository', owner: 'webhook' },
  { name: 'webhooks', key: 'id' },
  { name: 'event_queue', key: 'id' },
  { name: 'events', key: 'id' },
]

/** Tables whose rows name the account. The keys of the users go with the users. */
const namingTables: readonly OwnedTable[] = [
  { name: 'users', key: 'id' },
  { name: 'audit', key: 'id' },
]

/** The names of all tables whose rows name their account, and are removed here. */
export const removedTables: readonly string[] = [...ownedTables, ...namingTables]
  .filter(({ owner }) => owner === undefined)
  .map(({ name }) => name)

/** A literal in the statements, because for a parameter PostgreSQL plans to read a tenth of the table. */
const rowsAtOnce = 200

const objectColumns: Readonly<Record<string, string>> = {
  blobs: 'CASE WHEN content IS NULL THEN storage_key END AS storage_key, NULL AS notes',
  // Below 0: no request has claimed the session, so there is no object.
  uploads: 'CASE WHEN turn_until >= 0 THEN storage_key END AS storage_key, notes',
}

const removal = ({ name, key }: OwnedTable, owner: string) => `
DELETE FROM ${name} WHERE (${key}) IN (SELECT ${key} FROM ${name} WHERE ${owner} LIMIT ${rowsAtOnce})
${name in objectColumns ? `RETURNING ${objectColumns[name]}` : ''}`

const ofAccount = {
  account: 'account_id = $1',
  webhook: 'webhook_id IN (SELECT w.id FROM webhooks w WHERE w.account_id = $1)',
} as const

const removals = ownedTables.map((table) => ({
  sql: removal(table, ofAccount[table.owner ?? 'account']),
  hasObjects: table.name in objectColumns,
}))
const removalsByName = namingTables.map((table) => removal(table, 'account = $1'))

interface RemovedObject {
  readonly storage_key: string | null
  readonly notes: string | null
}

export class SqlAccountDeletions implements AccountDeletions {
  readonly #queries: Queryable

  constructor(queries: Queryable) {
    this.#queries = queries
  }

  async request(id: RowId): Promise<boolean> {
    const marked = await this.#queries.run(
      'UPDATE accounts SET deleting_since = coalesce(deleting_since, {now}) WHERE id = $1 AND resume_state IS NOT NULL',
      [id],
    )
    return marked > 0
  }

  findNext(after: RowId): Promise<DyingAccount | undefined> {
    return this.#queries.first<DyingAccount>(
      'SELECT id, name FROM accounts WHERE deleting_since IS NOT NULL AND id > $1 ORDER BY id LIMIT 1',
      [after],
    )
  }

  async removeSome({ id, name }: DyingAccount): Promise<number> {
    let removed = 0
    for (const { sql, hasObjects } of removals) {
      if (removed >= rowsAtOnce) return removed
      removed += hasObjects ? await this.#removeWithObjects(sql, id) : await this.#queries.run(sql, [id])
    }
    for (const sql of removalsByName) removed += await this.#queries.run(sql, [name])
    return removed
  }

  async #removeWithObjects(sql: string, id: RowId): Promise<number> {
    const rows = await this.#queries.returning<RemovedObject>(sql, [id])
    for (const { storage_key: key, notes } of rows) if (key !== null) await putIntoTrash(this.#queries, key, notes)
    return rows.length
  }

  async finish({ id }: DyingAccount, blockedMs: number): Promise<boolean> {
    return (
      (await this.#queries.run('DELETE FROM accounts WHERE id = $1 AND deleting_since <= {now} - $2', [
        id,
        blockedMs,
      ])) > 0
    )
  }
}
