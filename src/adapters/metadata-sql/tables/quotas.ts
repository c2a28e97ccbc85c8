import type { Quota, Quotas } from '../../../ports/quotas.ts'
import type { RowId } from '../../../ports/row-id.ts'
import type { Queryable } from '../database.ts'

export interface QuotaRow {
  readonly quota_bytes: number | null
  readonly quota_repositories: number | null
  readonly quota_tags: number | null
}

/** Undefined if there is no limit. */
export function toQuota(row: QuotaRow): Quota | undefined {
  const { quota_bytes: bytes, quota_repositories: repositories, quota_tags: tags } = row
  if (bytes === null && repositories === null && tags === null) return undefined
  return { bytes: bytes ?? undefined, repositories: repositories ?? undefined, tags: tags ?? undefined }
}

export class SqlQuotas implements Quotas {
  readonly #queries: Queryable

  constructor(queries: Queryable) {
    this.#queries = queries
  }

  async set(accountId: RowId, { bytes, repositories, tags }: Quota): Promise<void> {
    await this.#queries.run(
      'UPDATE accounts SET quota_bytes = $2, quota_repositories = $3, quota_tags = $4 WHERE id = $1',
      [accountId, bytes ?? null, repositories ?? null, tags ?? null],
    )
  }
}
