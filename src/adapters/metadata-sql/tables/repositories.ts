import type { RepositoryName } from '../../../oci/names.ts'
import type { Repositories, RepositoryRow, Scope } from '../../../ports/repositories.ts'
import type { RowId } from '../../../ports/row-id.ts'
import type { Queryable } from '../database.ts'

export class SqlRepositories implements Repositories {
  readonly #queries: Queryable

  constructor(queries: Queryable) {
    this.#queries = queries
  }

  async find({ accountId, repository }: Scope): Promise<RepositoryRow | undefined> {
    const row = await this.#queries.lookUp<{ id: number }>(
      'SELECT id FROM repositories r WHERE account_id = $1 AND name = $2',
      [accountId, repository],
    )
    return row && { accountId, id: row.id }
  }

  async ensure(scope: Scope): Promise<RepositoryRow> {
    const found = await this.find(scope)
    if (found !== undefined) return found
    await this.#queries.run(
      `INSERT INTO repositories (account_id, name, created_at) VALUES ($1, $2, {now})
       ON CONFLICT (account_id, name) DO NOTHING`,
      [scope.accountId, scope.repository],
    )
    const made = await this.find(scope)
    if (made === undefined) throw new Error(`repository ${scope.repository} vanished as it was made`)
    return made
  }

  async list(accountId: RowId, after: string | undefined, limit: number): Promise<RepositoryName[]> {
    const rows = await this.#queries.all<{ name: string }>(
      `SELECT name FROM repositories WHERE account_id = $1 AND name > $2 AND manifest_count > 0
       ORDER BY name LIMIT $3`,
      [accountId, after ?? '', limit],
    )
    return rows.map((row) => row.name as RepositoryName)
  }

  async addManifests(repository: RepositoryRow, change: 1 | -1): Promise<number> {
    const rows = await this.#queries.returning<{ manifest_count: number }>(
      `UPDATE repositories SET manifest_count = manifest_count + $3 WHERE account_id = $1 AND id = $2
       RETURNING manifest_count`,
      [repository.accountId, repository.id, change],
    )
    return rows[0]?.manifest_count ?? 0
  }
}
