import type { NewUser, User, UserChange, Users } from '../../../ports/users.ts'
import type { Queryable } from '../database.ts'

export interface UserRow {
  readonly id: number
  readonly name: string
  readonly password_hash: string | null
  readonly roles: string
  readonly account: string
  readonly is_disabled: number
  readonly token_epoch: number
}

export const userColumns = 'u.id, u.name, u.password_hash, u.roles, u.account, u.is_disabled, u.token_epoch'

const returnedColumns = userColumns.replaceAll('u.', '')

export class SqlUsers implements Users {
  readonly #queries: Queryable

  constructor(queries: Queryable) {
    this.#queries = queries
  }

  async find(name: string): Promise<User | undefined> {
    const row = await this.#queries.first<UserRow>(`SELECT ${userColumns} FROM users u WHERE u.name = $1`, [name])
    return row && toUser(row)
  }

  async findLocked(name: string): Promise<User | undefined> {
    const row = await this.#queries.first<UserRow>(
      `SELECT ${userColumns} FROM users u WHERE u.name = $1 {for update u}`,
      [name],
    )
    return row && toUser(row)
  }

  async lockAccount(account: string): Promise<void> {
    // Locks the oldest user of the account for it. Users are never deleted, so that is always the same row.
    await this.#queries.run(
      `SELECT u.id FROM users u
       WHERE u.id = (SELECT min(oldest.id) FROM users oldest WHERE oldest.account = $1) {for update u}`,
      [account],
    )
  }

  async count(account: string): Promise<number> {
    const row = await this.#queries.first<{ users: number }>('SELECT count(*) AS users FROM users WHERE account = $1', [
      account,
    ])
    return row?.users ?? 0
  }

  async list(account: string | undefined, after: string | undefined, limit: number): Promise<User[]> {
    const rows = await this.#queries.all<UserRow>(
      account === undefined
        ? `SELECT ${userColumns} FROM users u WHERE u.name > $1 ORDER BY u.name LIMIT $2`
        : `SELECT ${userColumns} FROM users u WHERE u.account = $3 AND u.name > $1 ORDER BY u.name LIMIT $2`,
      account === undefined ? [after ?? '', limit] : [after ?? '', limit, account],
    )
    return rows.map(toUser)
  }

  async add(user: NewUser): Promise<User | undefined> {
    const rows = await this.#queries.returning<UserRow>(
      `INSERT INTO users (name, password_hash, roles, account, is_disabled, created_at)
       VALUES ($1, $2, $3, $4, $5, {now}) ON CONFLICT (name) DO NOTHING RETURNING ${returnedColumns}`,
      [user.name, user.passwordHash ?? null, JSON.stringify(user.roles), user.account, user.isDisabled ? 1 : 0],
    )
    return rows[0] && toUser(rows[0])
  }

  async change(id: number, { passwordHash, roles, isDisabled }: UserChange): Promise<User | undefined> {
    const endsTokens = passwordHash !== undefined || isDisabled === true
    const rows = await this.#queries.returning<UserRow>(
      `UPDATE users SET password_hash = COALESCE($2, password_hash), roles = COALESCE($3, roles),
         is_disabled = COALESCE($4, is_disabled), token_epoch = token_epoch + $5
       WHERE id = $1 RETURNING ${returnedColumns}`,
      [
        id,
        passwordHash ?? null,
        roles === undefined ? null : JSON.stringify(roles),
        isDisabled === undefined ? null : Number(isDisabled),
        endsTokens ? 1 : 0,
      ],
    )
    return rows[0] && toUser(rows[0])
  }
}

export function toUser(row: UserRow): User {
  return {
    id: row.id,
    name: row.name,
    passwordHash: row.password_hash ?? undefined,
    roles: JSON.parse(row.roles),
    account: row.account,
    isDisabled: row.is_disabled !== 0,
    tokenEpoch: row.token_epoch,
  }
}
