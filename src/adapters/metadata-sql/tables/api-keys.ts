import type { ApiKey, ApiKeys, NewApiKey } from '../../../ports/api-keys.ts'
import type { User } from '../../../ports/users.ts'
import type { Queryable } from '../database.ts'
import { toUser, type UserRow, userColumns } from './users.ts'

interface ApiKeyRow {
  readonly key_id: number
  readonly key_name: string
  readonly expires_at: number | null
  readonly key_rights: string | null
  readonly key_repositories: string | null
  readonly key_created_at: number
  readonly last_used_at: number | null
}

const keyColumns = `k.id AS key_id, k.name AS key_name, k.expires_at, k.rights AS key_rights,
  k.repositories AS key_repositories, k.created_at AS key_created_at, k.last_used_at`

export class SqlApiKeys implements ApiKeys {
  readonly #queries: Queryable

  constructor(queries: Queryable) {
    this.#queries = queries
  }

  async find(secretHash: string): Promise<{ key: ApiKey; user: User } | undefined> {
    const row = await this.#queries.lookUp<ApiKeyRow & UserRow>(
      `SELECT ${userColumns}, ${keyColumns} FROM api_keys k JOIN users u ON u.id = k.user_id WHERE k.secret_hash = $1`,
      [secretHash],
    )
    return row && { key: toApiKey(row), user: toUser(row) }
  }

  async list(userId: number): Promise<ApiKey[]> {
    const rows = await this.#queries.all<ApiKeyRow>(
      `SELECT ${keyColumns} FROM api_keys k WHERE k.user_id = $1 ORDER BY k.name`,
      [userId],
    )
    return rows.map(toApiKey)
  }

  async add({ userId, name, secretHash, expiresAt, rights, repositories }: NewApiKey): Promise<boolean> {
    // Without a target: of two servers that add the same key at once, PostgreSQL may report either unique index.
    const added = await this.#queries.run(
      `INSERT INTO api_keys (user_id, name, secret_hash, expires_at, rights, repositories, created_at)
       VALUES ($1, $2, $3, $4, $5, $6, {now}) ON CONFLICT DO NOTHING`,
      [userId, name, secretHash, expiresAt ?? null, toText(rights), toText(repositories)],
    )
    return added > 0
  }

  async remove(userId: number, name: string): Promise<boolean> {
    return (await this.#queries.run('DELETE FROM api_keys WHERE user_id = $1 AND name = $2', [userId, name])) > 0
  }

  async hasAnyBeenUsed(): Promise<boolean> {
    // Asked once at the start. It reads the whole table only if no key was ever used, and then there are few keys.
    const row = await this.#queries.first('SELECT 1 AS found FROM api_keys WHERE last_used_at IS NOT NULL LIMIT 1', [])
    return row !== undefined
  }

  async recordUses(ids: readonly number[]): Promise<void> {
    await this.#queries.run(
      `UPDATE api_keys SET last_used_at = {now}
       WHERE id IN (SELECT CAST(each.value AS bigint) FROM {each $1})`,
      [JSON.stringify(ids)],
    )
  }
}

function toText(list: readonly string[] | undefined): string | null {
  return list === undefined ? null : JSON.stringify(list)
}

function toApiKey(row: ApiKeyRow): ApiKey {
  return {
    id: row.key_id,
    name: row.key_name,
    expiresAt: row.expires_at ?? undefined,
    rights: row.key_rights === null ? undefined : JSON.parse(row.key_rights),
    repositories: row.key_repositories === null ? undefined : JSON.parse(row.key_repositories),
    createdAt: row.key_created_at,
    lastUsedAt: row.last_used_at ?? undefined,
  }
}
