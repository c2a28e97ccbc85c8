import type { RepositoryName } from '../../../oci/names.ts'
import type { RepositoryPattern } from '../../../oci/repository-pattern.ts'
import type { OpenRepository, Repositories, RepositoryKey, RepositoryRow } from '../../../ports/repositories.ts'
import type { RowId } from '../../../ports/row-id.ts'
import type { Queryable } from '../database.ts'
import { type NameLookUp, type NameRange, planScan } from './repository-scan.ts'
import type { UsageLog } from './usage-log.ts'

// The key of repositories (name), in the order of the result.
const listRange = `
SELECT name FROM repositories
WHERE account_id = $1 AND name >= $2 AND name < $3 AND is_image > 0
  AND EXISTS (SELECT 1 FROM {each text $4} WHERE name LIKE each.value ESCAPE '\\')
ORDER BY name LIMIT $5`

// The key of repositories (name), once for each name. Nested, because the planner of PostgreSQL would otherwise search by the
// account alone and read all its repositories.
const listExisting = `
SELECT (SELECT r.name FROM repositories r
        WHERE r.account_id = $1 AND r.name = each.value AND r.is_image > 0) AS name
FROM {each text $2}`

// Finds a row if there are more than $3 manifests.
const hasMore = 'SELECT 1 AS found FROM manifests WHERE account_id = $1 AND repository_id = $2 LIMIT 1 OFFSET $3'

const lockAlone = 'SELECT id FROM repositories r WHERE account_id = $1 AND id = $2 {for update r}'

/**
 * If a repository has more manifests, transactions that run at the same time and remove one each cannot remove all of them. It
 * is larger than the number of connections that a database usually allows.
 */
const manifestsLeftMin = 500

export class SqlRepositories implements Repositories {
  readonly #queries: Queryable
  readonly #usage: UsageLog

  constructor(queries: Queryable, usage: UsageLog) {
    this.#queries = queries
    this.#usage = usage
  }

  async find({ accountId, repository }: RepositoryKey): Promise<RepositoryRow | undefined> {
    const row = await this.#queries.lookUp<{ id: number }>(
      'SELECT id FROM repositories r WHERE account_id = $1 AND name = $2',
      [accountId, repository],
    )
    return row && { accountId, id: row.id }
  }

  async ensure(repositoryKey: RepositoryKey): Promise<OpenRepository> {
    const found = await this.#findLocked(repositoryKey)
    if (found !== undefined) return found
    await this.#queries.run(
      `INSERT INTO repositories (account_id, name, created_at) VALUES ($1, $2, {now})
       ON CONFLICT (account_id, name) DO NOTHING`,
      [repositoryKey.accountId, repositoryKey.repository],
    )
    const created = await this.#findLocked(repositoryKey)
    if (created === undefined) throw new Error(`repository ${repositoryKey.repository} vanished after it was created`)
    return created
  }

  /** The lock keeps the collector from removing an empty repository until the caller has put something into it. */
  async #findLocked({ accountId, repository }: RepositoryKey): Promise<OpenRepository | undefined> {
    const row = await this.#queries.first<{ id: number; is_image: number }>(
      'SELECT id, is_image FROM repositories r WHERE account_id = $1 AND name = $2 {for key share r}',
      [accountId, repository],
    )
    return row && { accountId, id: row.id, isImage: row.is_image > 0 }
  }

  async lock({ accountId, id }: RepositoryRow): Promise<void> {
    await this.#queries.first('SELECT id FROM repositories r WHERE account_id = $1 AND id = $2 {for no key update r}', [
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
      `SELECT name FROM repositories WHERE account_id = $1 AND name > $2 AND is_image > 0
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
    for (const step of planScan(within, after)) {
      if (found.length >= limit) break
      const remaining = limit - found.length
      const names = await ('names' in step
        ? this.#listExisting(accountId, step)
        : this.#listRange(accountId, step, remaining))
      for (const name of names.slice(0, remaining)) found.push(name)
    }
    return found
  }

  async #listExisting(accountId: RowId, { names }: NameLookUp): Promise<RepositoryName[]> {
    const rows = await this.#queries.all<{ name: string | null }>(listExisting, [accountId, JSON.stringify(names)])
    return rows.flatMap(({ name }) => (name === null ? [] : [name as RepositoryName])).toSorted()
  }

  /** The range has one bound at each end. Of two lower bounds, the engine would search by either one. */
  async #listRange(accountId: RowId, step: NameRange, limit: number): Promise<RepositoryName[]> {
    const patterns = JSON.stringify(step.patterns.map(toLike))
    const values = [accountId, step.from, step.before, patterns, limit]
    const rows = await this.#queries.all<{ name: string }>(listRange, values)
    return rows.map((row) => row.name as RepositoryName)
  }

  async markAsImage(repository: RepositoryRow): Promise<void> {
    const changed = await this.#queries.run(
      'UPDATE repositories SET is_image = 1 WHERE account_id = $1 AND id = $2 AND is_image = 0',
      [repository.accountId, repository.id],
    )
    if (changed > 0) await this.#usage.record(repository, { images: 1 })
  }

  async lockForRemoval({ accountId, id }: RepositoryRow, count: number): Promise<void> {
    if (await this.#hasMore(accountId, id, manifestsLeftMin * count)) return
    await this.#queries.first(lockAlone, [accountId, id])
  }

  async unmarkIfEmpty(repository: RepositoryRow): Promise<void> {
    const { accountId, id } = repository
    if (await this.#hasMore(accountId, id, 0)) return
    await this.#queries.first(lockAlone, [accountId, id])
    if (await this.#hasMore(accountId, id, 0)) return
    const changed = await this.#queries.run(
      'UPDATE repositories SET is_image = 0 WHERE account_id = $1 AND id = $2 AND is_image > 0',
      [accountId, id],
    )
    if (changed > 0) await this.#usage.record(repository, { images: -1 })
  }

  async #hasMore(accountId: RowId, id: RowId, count: number): Promise<boolean> {
    return (await this.#queries.first(hasMore, [accountId, id, count])) !== undefined
  }
}

/** `*` becomes `%`. Underscores, which are common in names, are escaped because they are a wildcard of LIKE. */
function toLike(pattern: RepositoryPattern): string {
  return pattern.replaceAll('_', '\\_').replaceAll('*', '%')
}
