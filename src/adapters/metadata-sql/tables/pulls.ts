import type { Tag } from '../../../oci/names.ts'
import type { Pull, Pulls } from '../../../ports/pulls.ts'
import type { RepositoryRow } from '../../../ports/repositories.ts'
import type { RowId } from '../../../ports/row-id.ts'
import type { Queryable } from '../database.ts'

const pulledAt = "CAST(each.value ->> 'pulledAt' AS bigint)"
const accountId = "CAST(each.value ->> 'accountId' AS bigint)"
const repositoryId = "CAST(each.value ->> 'repositoryId' AS bigint)"

/** Only the first pull of a period is written. Integer division gives the number of the period. */
const unlessSamePeriod = (table: string) =>
  `DO UPDATE SET pulled_at = excluded.pulled_at WHERE ${table}.pulled_at / $2 < excluded.pulled_at / $2`

// `skip locked`: a parent whose row is locked is being removed. To wait for it could be a deadlock, because the transaction that
// removes it may wait for a row that this one has written. Without `WHERE true`, SQLite would take the ON of the upsert for the
// ON of a join. PostgreSQL locks after the WHERE, so the order of the list is the order of the locks.
const recordManifests = `
INSERT INTO manifest_pulls (account_id, manifest_id, pulled_at)
SELECT m.account_id, m.id, ${pulledAt} FROM {each $1}
JOIN manifests m ON m.account_id = ${accountId} AND m.id = CAST(each.value ->> 'manifestId' AS bigint)
WHERE true {for key share m skip locked}
ON CONFLICT (account_id, manifest_id) ${unlessSamePeriod('manifest_pulls')}`

const recordTags = `
INSERT INTO tag_pulls (account_id, repository_id, tag, pulled_at)
SELECT t.account_id, t.repository_id, t.name, ${pulledAt} FROM {each $1}
JOIN tags t ON t.account_id = ${accountId} AND t.repository_id = ${repositoryId} AND t.name = each.value ->> 'tag'
WHERE true {for key share t skip locked}
ON CONFLICT (account_id, repository_id, tag) ${unlessSamePeriod('tag_pulls')}`

const recordRepositories = `
INSERT INTO repository_pulls (account_id, repository_id, pulled_at)
SELECT r.account_id, r.id, ${pulledAt} FROM {each $1}
JOIN repositories r ON r.account_id = ${accountId} AND r.id = ${repositoryId}
WHERE true {for key share r skip locked}
ON CONFLICT (account_id, repository_id) ${unlessSamePeriod('repository_pulls')}`

const findOfTags = `
SELECT tag, pulled_at FROM tag_pulls WHERE account_id = $1 AND repository_id = $2 AND tag {in $3}`

const findOfManifests = `
SELECT manifest_id, pulled_at FROM manifest_pulls
WHERE account_id = $1 AND manifest_id IN (SELECT CAST(each.value AS bigint) FROM {each $2})`

const findOfRepository = 'SELECT pulled_at FROM repository_pulls WHERE account_id = $1 AND repository_id = $2'

export class SqlPulls implements Pulls {
  readonly #queries: Queryable

  constructor(queries: Queryable) {
    this.#queries = queries
  }

  async record(pulls: readonly Pull[], periodMs: number): Promise<void> {
    const rows = pulls.map(({ repository, manifestId, tag, pulledAt }) => ({
      accountId: repository.accountId,
      repositoryId: repository.id,
      manifestId,
      tag,
      pulledAt,
    }))
    const byTag = rows.filter(({ tag }) => tag !== undefined)
    await this.#record(recordManifests, rows, ({ manifestId }) => sortable(manifestId), periodMs)
    await this.#record(recordTags, byTag, (row) => `${sortable(row.repositoryId)} ${row.tag}`, periodMs)
    await this.#record(recordRepositories, rows, (row) => sortable(row.repositoryId), periodMs)
  }

  /** One row for each key, the latest pull. Sorted, so that two servers lock rows in one order. */
  async #record<R extends { readonly pulledAt: number }>(
    sql: string,
    rows: readonly R[],
    keyOf: (row: R) => string,
    periodMs: number,
  ): Promise<void> {
    const latest = new Map<string, R>()
    for (const row of rows.toSorted((one, other) => one.pulledAt - other.pulledAt)) latest.set(keyOf(row), row)
    if (latest.size === 0) return
    const sorted = [...latest].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, row]) => row)
    await this.#queries.run(sql, [JSON.stringify(sorted), periodMs])
  }

  async findOfTags(repository: RepositoryRow, tags: readonly Tag[]): Promise<ReadonlyMap<string, number>> {
    const values = [repository.accountId, repository.id, JSON.stringify(tags)]
    const rows = await this.#queries.all<{ tag: string; pulled_at: number }>(findOfTags, values)
    return new Map(rows.map((row) => [row.tag, row.pulled_at]))
  }

  async findOfManifests(
    { accountId }: RepositoryRow,
    manifestIds: readonly RowId[],
  ): Promise<ReadonlyMap<RowId, number>> {
    const values = [accountId, JSON.stringify(manifestIds)]
    const rows = await this.#queries.all<{ manifest_id: number; pulled_at: number }>(findOfManifests, values)
    return new Map(rows.map((row) => [row.manifest_id, row.pulled_at]))
  }

  async findOfRepository(repository: RepositoryRow): Promise<number | undefined> {
    const values = [repository.accountId, repository.id]
    return (await this.#queries.first<{ pulled_at: number }>(findOfRepository, values))?.pulled_at
  }
}

function sortable(id: RowId): string {
  return String(id).padStart(16, '0')
}
