import type { ApiKey, User, UserStore } from '../../../ports/user-store.ts'
import type { Queryable } from '../database.ts'

interface UserRow {
  readonly id: number
  readonly name: string
  readonly password_hash: string | null
  readonly roles: string
  readonly account: string
  readonly is_disabled: number
}

interface ApiKeyRow extends UserRow {
  readonly key_name: string
  readonly expires_at: number | null
}

const userColumns = 'u.id, u.name, u.password_hash, u.roles, u.account, u.is_disabled'

export class SqlUsers implements UserStore {
  readonly #queries: Queryable

  constructor(queries: Queryable) {
    this.#queries = queries
  }

  async findUser(name: string): Promise<User | undefined> {
    const row = await this.#queries.first<UserRow>(`SELECT ${userColumns} FROM users u WHERE u.name = $1`, [name])
    return row && toUser(row)
  }

  async saveUser(user: Omit<User, 'id'>): Promise<User> {
    const rows = await this.#queries.returning<{ id: number }>(
      `INSERT INTO users (name, password_hash, roles, account, is_disabled, created_at)
       VALUES ($1, $2, $3, $4, $5, {now})
       ON CONFLICT (name) DO UPDATE SET password_hash = excluded.password_hash, roles = excluded.roles,
         account = excluded.account, is_disabled = excluded.is_disabled
       RETURNING id`,
      [user.name, user.passwordHash ?? null, JSON.stringify(user.roles), user.account, user.isDisabled ? 1 : 0],
    )
    const id = rows[0]?.id
    if (id === undefined) throw new Error(`user ${user.name} was not stored`)
    return { ...user, id }
  }

  async findApiKey(secretHash: string): Promise<ApiKey | undefined> {
    const row = await this.#queries.first<ApiKeyRow>(
      `SELECT ${userColumns}, k.name AS key_name, k.expires_at
       FROM api_keys k JOIN users u ON u.id = k.user_id WHERE k.secret_hash = $1`,
      [secretHash],
    )
    return row && { name: row.key_name, user: toUser(row), expiresAt: row.expires_at ?? undefined }
  }

  async saveApiKey(userId: number, name: string, secretHash: string, expiresAt: number | undefined): Promise<void> {
    await this.#queries.run(
      `INSERT INTO api_keys (user_id, name, secret_hash, expires_at, created_at) VALUES ($1, $2, $3, $4, {now})
       ON CONFLICT (user_id, name) DO UPDATE SET secret_hash = excluded.secret_hash, expires_at = excluded.expires_at`,
      [userId, name, secretHash, expiresAt ?? null],
    )
  }

  async hasApiKey(userId: number): Promise<boolean> {
    const row = await this.#queries.first('SELECT 1 AS found FROM api_keys WHERE user_id = $1 LIMIT 1', [userId])
    return row !== undefined
  }
}

function toUser(row: UserRow): User {
  return {
    id: row.id,
    name: row.name,
    passwordHash: row.password_hash ?? undefined,
    roles: JSON.parse(row.roles),
    account: row.account,
    isDisabled: row.is_disabled !== 0,
  }
}
