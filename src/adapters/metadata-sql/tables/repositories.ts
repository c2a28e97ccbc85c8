import type { RepositoryName } from '../../../oci/names.ts'
import type { RepositoryPattern } from '../../../oci/repository-pattern.ts'
import type { Repositories, RepositoryRow, Scope } from '../../../ports/repositories.ts'
import type { RowId } from '../../../ports/row-id.ts'
import type { Queryable } from '../database.ts'
import { type NamedStep, planNames, type Stretch } from './name-ranges.ts'

const namesBetween = `
SELECT name FROM repositories WHERE account_id = $1 AND name >= $2 AND name < $3
AND manifest_count > 0 AND EXISTS (SELECT 1 FROM {texts $4} WHERE name LIKE each.value ESCAPE '\\')
ORDER BY name LIMIT $5`

// Nested: of an account and a list of names, the planner thinks that it has as good as found them by the account alone.
const namesThatAre = `
SELECT (SELECT r.name FROM repositories r
        WHERE r.account_id = $1 AND r.name = each.value AND r.manifest_count > 0) AS name
FROM {texts $2}`

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
    const found = await this.#findKept(scope)
    if (found !== undefined) return found
    await this.#queries.run(
      `INSERT INTO repositories (account_id, name, created_at) VALUES ($1, $2, {now})
       ON CONFLICT (account_id, name) DO NOTHING`,
      [scope.accountId, scope.repository],
    )
    const made = await this.#findKept(scope)
    if (made === undefined) throw new Error(`repository ${scope.repository} vanished as it was made`)
    return made
  }

  /** One that is empty may be collected just now: whoever is about to put something into it has to hold it. */
  async #findKept({ accountId, repository }: Scope): Promise<RepositoryRow | undefined> {
    const row = await this.#queries.first<{ id: number }>(
      'SELECT id FROM repositories r WHERE account_id = $1 AND name = $2 {keep r}',
      [accountId, repository],
    )
    return row && { accountId, id: row.id }
  }

  async lock({ accountId, id }: RepositoryRow): Promise<void> {
    await this.#queries.first('SELECT id FROM repositories r WHERE account_id = $1 AND id = $2 {serialize r}', [
      accountId,
      id,
    ])
  }

  async list(
    accountId: RowId,
    after: string | undefined,
    limit: number,
    within?: readonly RepositoryPattern[],
  ): Promise<RepositoryName[]> {
    if (within !== undefined) return this.#listWithin(accountId, after ?? '', limit, within)
    const rows = await this.#queries.all<{ name: string }>(
      `SELECT name FROM repositories WHERE account_id = $1 AND name > $2 AND manifest_count > 0
       ORDER BY name LIMIT $3`,
      [accountId, after ?? '', limit],
    )
    return rows.map((row) => row.name as RepositoryName)
  }

  async #listWithin(
    accountId: RowId,
    after: string,
    limit: number,
    within: readonly RepositoryPattern[],
  ): Promise<RepositoryName[]> {
    const found: RepositoryName[] = []
    for (const step of planNames(within, after)) {
      if (found.length >= limit) break
      const left = limit - found.length
      const names = await ('names' in step
        ? this.#listNamed(accountId, step)
        : this.#listBetween(accountId, step, left))
      for (const name of names.slice(0, left)) found.push(name)
    }
    return found
  }

  async #listNamed(accountId: RowId, { names }: NamedStep): Promise<RepositoryName[]> {
    const rows = await this.#queries.all<{ name: string | null }>(namesThatAre, [accountId, JSON.stringify(names)])
    return rows.flatMap(({ name }) => (name === null ? [] : [name as RepositoryName])).toSorted()
  }

  /** One bound at each end of a stretch: of two, the engine takes either for its way into the index. */
  async #listBetween(accountId: RowId, step: Stretch, limit: number): Promise<RepositoryName[]> {
    const patterns = JSON.stringify(step.patterns.map(toLike))
    const values = [accountId, step.from, step.before, patterns, limit]
    const rows = await this.#queries.all<{ name: string }>(namesBetween, values)
    return rows.map((row) => row.name as RepositoryName)
  }

  async changeManifestCount(repository: RepositoryRow, change: 1 | -1): Promise<number> {
    const rows = await this.#queries.returning<{ manifest_count: number }>(
      `UPDATE repositories SET manifest_count = manifest_count + $3 WHERE account_id = $1 AND id = $2
       RETURNING manifest_count`,
      [repository.accountId, repository.id, change],
    )
    return rows[0]?.manifest_count ?? 0
  }
}

/** `*` is LIKE's `%`; an underscore, which is common in names, must not be LIKE's wildcard. */
function toLike(pattern: RepositoryPattern): string {
  return pattern.replaceAll('_', '\\_').replaceAll('*', '%')
}
