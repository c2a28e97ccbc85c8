import type { Tag } from '../../../oci/names.ts'
import type { RepositoryKey, RepositoryRow } from '../../../ports/repositories.ts'
import type { RowId } from '../../../ports/row-id.ts'
import type { Tags } from '../../../ports/tags.ts'
import type { Queryable } from '../database.ts'

/** More rows than any table has. */
const noLimit = Number.MAX_SAFE_INTEGER

export class SqlTags implements Tags {
  readonly #queries: Queryable

  constructor(queries: Queryable) {
    this.#queries = queries
  }

  async list(repository: RepositoryRow, after: string | undefined, limit: number | undefined): Promise<Tag[]> {
    const rows = await this.#queries.all<{ name: string }>(
      'SELECT name FROM tags WHERE account_id = $1 AND repository_id = $2 AND name > $3 ORDER BY name LIMIT $4',
      [repository.accountId, repository.id, after ?? '', limit ?? noLimit],
    )
    return rows.map((row) => row.name as Tag)
  }

  async point(repository: RepositoryRow, tag: Tag, manifestId: RowId): Promise<void> {
    await this.#queries.run(
      `INSERT INTO tags (account_id, repository_id, name, manifest_id, updated_at) VALUES ($1, $2, $3, $4, {now})
       ON CONFLICT (account_id, repository_id, name) DO UPDATE
       SET manifest_id = excluded.manifest_id, version = tags.version + 1, updated_at = excluded.updated_at`,
      [repository.accountId, repository.id, tag, manifestId],
    )
  }

  async remove({ accountId, repository }: RepositoryKey, tag: Tag): Promise<boolean> {
    const removed = await this.#queries.run(
      `DELETE FROM tags WHERE account_id = $1 AND name = $3
       AND repository_id = (SELECT id FROM repositories WHERE account_id = $1 AND name = $2)`,
      [accountId, repository, tag],
    )
    return removed > 0
  }

  async removeAllOf(repository: RepositoryRow, manifestId: RowId): Promise<void> {
    await this.#queries.run('DELETE FROM tags WHERE account_id = $1 AND manifest_id = $2', [
      repository.accountId,
      manifestId,
    ])
  }
}
