import type { RepositoryRow } from '../../../ports/repositories.ts'
import type { RowId } from '../../../ports/row-id.ts'
import type { Queryable } from '../database.ts'

/** What changes in one repository, and in its account. */
export interface UsageChange {
  readonly images?: number
  readonly manifests?: number
  readonly tags?: number
  readonly bytes?: number
  readonly manifestBytes?: number
  readonly ownedBytes?: number
  readonly storedBytes?: number
  /** A time, or `now`. */
  readonly pushedAt?: number | 'now'
  /** A blob whose links have changed, so that it may have another owner. */
  readonly blobId?: RowId
}

/** The tables append their changes here. */
export interface UsageLog {
  record(repository: RepositoryRow, change: UsageChange): Promise<void> | void
}

const insert = `
INSERT INTO usage_changes (account_id, repository_id, blob_id, images, manifests, tags, bytes, manifest_bytes, owned_bytes,
                           stored_bytes, pushed_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, CASE WHEN $11 < 0 THEN {now} ELSE $11 END)`

async function append(queries: Queryable, repository: RepositoryRow, change: UsageChange): Promise<void> {
  const { images = 0, manifests = 0, tags = 0, bytes = 0, manifestBytes = 0, ownedBytes = 0, storedBytes = 0 } = change
  const pushedAt = change.pushedAt === 'now' ? -1 : (change.pushedAt ?? 0)
  const values = [images, manifests, tags, bytes, manifestBytes, ownedBytes, storedBytes, pushedAt]
  await queries.run(insert, [repository.accountId, repository.id, change.blobId ?? 0, ...values])
}

/** Outside of a transaction: each change is a row of its own. */
export class ImmediateUsageLog implements UsageLog {
  readonly #queries: Queryable

  constructor(queries: Queryable) {
    this.#queries = queries
  }

  record(repository: RepositoryRow, change: UsageChange): Promise<void> {
    return append(this.#queries, repository, change)
  }
}

/** Collects the changes of one transaction: one row for each repository, and one for each further blob. */
export class TransactionUsageLog implements UsageLog {
  readonly #changes: { readonly repository: RepositoryRow; change: UsageChange }[] = []

  record(repository: RepositoryRow, change: UsageChange): void {
    const same = this.#changes.find(
      (one) =>
        one.repository.id === repository.id &&
        (change.blobId === undefined || one.change.blobId === undefined || one.change.blobId === change.blobId),
    )
    if (same === undefined) this.#changes.push({ repository, change })
    else same.change = add(same.change, change)
  }

  async append(queries: Queryable): Promise<void> {
    for (const { repository, change } of this.#changes) await append(queries, repository, change)
  }
}

function add(one: UsageChange, other: UsageChange): UsageChange {
  const sum = (name: Exclude<keyof UsageChange, 'pushedAt' | 'blobId'>) => (one[name] ?? 0) + (other[name] ?? 0)
  const blobId = one.blobId ?? other.blobId
  const pushedAt = other.pushedAt ?? one.pushedAt
  return {
    images: sum('images'),
    manifests: sum('manifests'),
    tags: sum('tags'),
    bytes: sum('bytes'),
    manifestBytes: sum('manifestBytes'),
    ownedBytes: sum('ownedBytes'),
    storedBytes: sum('storedBytes'),
    ...(pushedAt === undefined ? {} : { pushedAt }),
    ...(blobId === undefined ? {} : { blobId }),
  }
}
