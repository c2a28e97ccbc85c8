import type { Digest } from '../../../oci/digest.ts'
import type { Tag } from '../../../oci/names.ts'
import type { RepositoryRow } from '../../../ports/repositories.ts'
import type { HistoryBatch, HistoryPosition, TagHistory, TagMove, TagMoveCause } from '../../../ports/tag-history.ts'
import type { Queryable } from '../database.ts'

interface MoveRow {
  readonly id: number
  readonly from_digest: string | null
  readonly to_digest: string | null
  readonly moved_at: number
  readonly moved_by: string
  readonly cause: string
}

interface AgedRow {
  readonly id: number
  readonly account_id: number
  readonly repository_id: number
  readonly tag: string
  readonly moved_at: number
  readonly is_deletion: number
  readonly state: string
}

const columns = 'id, from_digest, to_digest, moved_at, moved_by, cause'

// Index tag_history_of_tag, in its order or backwards.
const ofTag = `SELECT ${columns} FROM tag_history WHERE account_id = $1 AND repository_id = $2 AND tag = $3`
const list = `${ofTag} AND (moved_at, id) < ($4, $5) ORDER BY moved_at DESC, id DESC LIMIT $6`
const findLastUntil = `${ofTag} AND moved_at <= $4 ORDER BY moved_at DESC, id DESC LIMIT 1`
const findFirstAfter = `${ofTag} AND moved_at > $4 ORDER BY moved_at, id LIMIT 1`

// Index tag_history_by_age, in its order.
const listAged = `
SELECT h.id, h.account_id, h.repository_id, h.tag, h.moved_at, a.state,
  CASE WHEN h.to_digest IS NULL THEN 1 ELSE 0 END AS is_deletion
FROM tag_history h JOIN accounts a ON a.id = h.account_id
WHERE (h.moved_at, h.id) > ($2, $3) AND h.moved_at <= {now} - $1
ORDER BY h.moved_at, h.id LIMIT $4`

const removeEarlier = `
DELETE FROM tag_history WHERE account_id = $1 AND repository_id = $2 AND tag = $3 AND (moved_at, id) < ($4, $5)`

/** After every move. */
const theEnd: HistoryPosition = { movedAt: Number.MAX_SAFE_INTEGER, id: Number.MAX_SAFE_INTEGER }

export class SqlTagHistory implements TagHistory {
  readonly #queries: Queryable

  constructor(queries: Queryable) {
    this.#queries = queries
  }

  async list(repository: RepositoryRow, tag: Tag, before: HistoryPosition = theEnd, limit: number): Promise<TagMove[]> {
    const values = [...keyOf(repository, tag), before.movedAt, before.id, limit]
    const rows = await this.#queries.all<MoveRow>(list, values)
    return rows.map(toMove)
  }

  findLastUntil(repository: RepositoryRow, tag: Tag, time: number): Promise<TagMove | undefined> {
    return this.#find(findLastUntil, repository, tag, time)
  }

  findFirstAfter(repository: RepositoryRow, tag: Tag, time: number): Promise<TagMove | undefined> {
    return this.#find(findFirstAfter, repository, tag, time)
  }

  async #find(sql: string, repository: RepositoryRow, tag: Tag, time: number): Promise<TagMove | undefined> {
    const row = await this.#queries.first<MoveRow>(sql, [...keyOf(repository, tag), time])
    return row && toMove(row)
  }

  async removeSuperseded(keepMs: number, after: HistoryPosition | undefined, limit: number): Promise<HistoryBatch> {
    const aged = await this.#queries.all<AgedRow>(listAged, [keepMs, after?.movedAt ?? 0, after?.id ?? 0, limit])
    let removed = 0
    for (const row of aged) {
      if (row.state !== 'enabled') continue
      const end = row.id + row.is_deletion
      const values = [row.account_id, row.repository_id, row.tag, row.moved_at, end]
      removed += await this.#queries.run(removeEarlier, values)
    }
    const last = aged.at(-1)
    return { removed, next: last && { movedAt: last.moved_at, id: last.id } }
  }
}

function keyOf(repository: RepositoryRow, tag: Tag): [number, number, string] {
  return [repository.accountId, repository.id, tag]
}

function toMove(row: MoveRow): TagMove {
  return {
    id: row.id,
    from: (row.from_digest ?? undefined) as Digest | undefined,
    to: (row.to_digest ?? undefined) as Digest | undefined,
    movedAt: row.moved_at,
    movedBy: row.moved_by,
    cause: row.cause as TagMoveCause,
  }
}
