import type { RepositoryName } from '../../../oci/names.ts'
import type { RepositoryRow } from '../../../ports/repositories.ts'
import type { RowId } from '../../../ports/row-id.ts'
import type {
  AccountUsage,
  FoldedChanges,
  ListedPart,
  ListedRepository,
  RepositoryOrder,
  RepositoryPosition,
  RepositoryUsage,
  Usage,
  WaitingBytes,
} from '../../../ports/usage.ts'
import type { Queryable } from '../database.ts'
import { countBlobs, foldChanges } from './usage-folding.ts'

interface UsageRow {
  readonly manifests: number
  readonly tags: number
  readonly bytes: number
  readonly manifest_bytes: number
  readonly owned_bytes: number
  readonly pushed_at: number
}

interface ListedRow extends UsageRow {
  readonly id: number
  readonly name: string
  readonly created_at: number
  readonly is_image: number
  readonly pulled_at: number
}

interface AccountRow {
  readonly images: number
  readonly manifests: number
  readonly tags: number
  readonly bytes: number
  readonly stored_bytes: number
}

const sum = (column: string) => `CAST(coalesce(sum(${column}), 0) AS bigint) AS ${column}`
const ofRepository = 'manifests, tags, bytes, manifest_bytes, owned_bytes, pushed_at'
const ofAccount = 'images, manifests, tags, bytes, stored_bytes'

// One statement, so that a row that is folded meanwhile counts once. The key of repository_usage, and all changes of the
// repository that are not folded.
const findOfRepository = `
SELECT ${['manifests', 'tags', 'bytes', 'manifest_bytes', 'owned_bytes'].map(sum).join(', ')},
  CAST(coalesce(max(pushed_at), 0) AS bigint) AS pushed_at
FROM (SELECT ${ofRepository} FROM repository_usage WHERE account_id = $1 AND repository_id = $2
      UNION ALL SELECT ${ofRepository} FROM usage_changes WHERE account_id = $1 AND repository_id = $2) AS parts`

const findOfAccount = `
SELECT ${['images', 'manifests', 'tags', 'bytes', 'stored_bytes'].map(sum).join(', ')}
FROM (SELECT ${ofAccount} FROM account_usage WHERE account_id = $1
      UNION ALL SELECT ${ofAccount} FROM usage_changes WHERE account_id = $1) AS parts`

const zeroIfNone = (column: string) => `coalesce(u.${column}, 0) AS ${column}`
const pulledAt = `coalesce((SELECT p.pulled_at FROM repository_pulls p
  WHERE p.account_id = r.account_id AND p.repository_id = r.id), 0) AS pulled_at`
const listed = `r.id, r.name, r.created_at, r.is_image, ${ofRepository.split(', ').map(zeroIfNone).join(', ')}, ${pulledAt}`
const usageOfListed = 'LEFT JOIN repository_usage u ON u.account_id = r.account_id AND u.repository_id = r.id'

// The key of repositories (name), in the order of the result.
const listByName = `
SELECT ${listed} FROM repositories r
${usageOfListed}
WHERE r.account_id = $1 AND r.name > $2 ORDER BY r.name LIMIT $3`

// An index of repository_usage, backwards.
const listBy = (column: string) => `
SELECT ${listed} FROM repository_usage u JOIN repositories r ON r.id = u.repository_id
WHERE u.account_id = $1 AND (u.${column}, u.repository_id) < ($2, $3)
ORDER BY u.${column} DESC, u.repository_id DESC LIMIT $4`

const bySize = listBy('bytes')
const byPush = listBy('pushed_at')

// Index repository_pulls_by_time, backwards.
const byPull = `
SELECT ${listed} FROM repository_pulls q JOIN repositories r ON r.id = q.repository_id
${usageOfListed}
WHERE q.account_id = $1 AND (q.pulled_at, q.repository_id) < ($2, $3)
ORDER BY q.pulled_at DESC, q.repository_id DESC LIMIT $4`

// The key of repositories (id), backwards.
const neverPulled = `
SELECT ${listed} FROM repositories r
${usageOfListed}
WHERE r.account_id = $1 AND r.id < $2 ORDER BY r.id DESC LIMIT $3`

// The key of blob_queue. The limit comes first, so that the statement reads no more than that.
const findWaiting = `
SELECT count(*) AS looked, CAST(coalesce(sum(CASE WHEN EXISTS (
    SELECT 1 FROM manifest_entries e WHERE e.account_id = q.account_id AND e.blob_id = q.blob_id)
  THEN 0 ELSE (SELECT b.size_bytes FROM blobs b WHERE b.id = q.blob_id) END), 0) AS bigint) AS bytes
FROM (SELECT account_id, blob_id FROM blob_queue WHERE account_id = $1 ORDER BY blob_id LIMIT $2) AS q`

/** After every repository. */
const theEnd: RepositoryPosition = { value: Number.MAX_SAFE_INTEGER, id: Number.MAX_SAFE_INTEGER }

export class SqlUsage implements Usage {
  readonly #queries: Queryable

  constructor(queries: Queryable) {
    this.#queries = queries
  }

  async findOfRepository({ accountId, id }: RepositoryRow): Promise<RepositoryUsage> {
    return toUsage(await readUsage(this.#queries, [accountId, id]))
  }

  async findOfAccount(accountId: RowId): Promise<AccountUsage> {
    const row = await this.#queries.first<AccountRow>(findOfAccount, [accountId])
    if (row === undefined) throw new Error('a sum has no row')
    return toAccountUsage(row)
  }

  async listByName(accountId: RowId, after: string | undefined, limit: number): Promise<ListedPart<string>> {
    const rows = await this.#queries.all<ListedRow>(listByName, [accountId, after ?? '', limit])
    return { repositories: toListed(rows), next: rows.length < limit ? undefined : rows.at(-1)?.name }
  }

  async listBy(
    order: RepositoryOrder,
    accountId: RowId,
    after: RepositoryPosition = theEnd,
    limit: number,
  ): Promise<ListedPart<RepositoryPosition>> {
    if (order === 'pulled' && after.value === 0) return this.#listNeverPulled(accountId, after.id, limit)
    const values = [accountId, after.value, after.id, limit]
    const statement = { size: bySize, pushed: byPush, pulled: byPull }[order]
    const rows = await this.#queries.all<ListedRow>(statement, values)
    const last = rows.length < limit ? undefined : rows.at(-1)
    const value = last && { size: last.bytes, pushed: last.pushed_at, pulled: last.pulled_at }[order]
    const next = last && { value: value ?? 0, id: last.id }
    return { repositories: toListed(rows), next: order === 'pulled' ? (next ?? { ...theEnd, value: 0 }) : next }
  }

  /** In the order of their ids, the newest first. */
  async #listNeverPulled(accountId: RowId, before: RowId, limit: number): Promise<ListedPart<RepositoryPosition>> {
    const rows = await this.#queries.all<ListedRow>(neverPulled, [accountId, before, limit])
    const last = rows.length < limit ? undefined : rows.at(-1)
    return {
      repositories: toListed(rows.filter((row) => row.pulled_at === 0)),
      next: last && { value: 0, id: last.id },
    }
  }

  async findWaiting(accountId: RowId, limit: number): Promise<WaitingBytes> {
    const row = await this.#queries.first<{ looked: number; bytes: number }>(findWaiting, [accountId, limit])
    return { bytes: row?.bytes ?? 0, isExact: (row?.looked ?? 0) < limit }
  }

  async hasChanges(): Promise<boolean> {
    return (await this.#queries.first('SELECT 1 AS found FROM usage_changes LIMIT 1', [])) !== undefined
  }

  fold(limit: number): Promise<FoldedChanges> {
    return foldChanges(this.#queries, limit)
  }

  countBlobs(after: RowId, limit: number): Promise<RowId | undefined> {
    return countBlobs(this.#queries, after, limit)
  }
}

/** The sums and the changes that are not folded, as they are stored. */
export async function readUsage(queries: Queryable, key: readonly [accountId: RowId, id: RowId]): Promise<UsageRow> {
  const row = await queries.first<UsageRow>(findOfRepository, key)
  if (row === undefined) throw new Error('a sum has no row')
  return row
}

function toListed(rows: readonly ListedRow[]): ListedRepository[] {
  return rows
    .filter((row) => row.is_image > 0)
    .map((row) => ({
      id: row.id,
      name: row.name as RepositoryName,
      createdAt: row.created_at,
      pulledAt: row.pulled_at === 0 ? undefined : row.pulled_at,
      ...toUsage(row),
    }))
}

/** `owned_bytes` may lag behind, and older content may not be counted yet. */
function toUsage(row: UsageRow): RepositoryUsage {
  const bytes = Math.max(0, row.bytes)
  return {
    manifests: Math.max(0, row.manifests),
    tags: Math.max(0, row.tags),
    bytes,
    ownedBytes: Math.max(0, Math.min(bytes, row.manifest_bytes + row.owned_bytes)),
    pushedAt: row.pushed_at === 0 ? undefined : row.pushed_at,
  }
}

function toAccountUsage(row: AccountRow): AccountUsage {
  return {
    images: row.images,
    manifests: Math.max(0, row.manifests),
    tags: Math.max(0, row.tags),
    logicalBytes: Math.max(0, row.bytes),
    storedBytes: Math.max(0, row.stored_bytes),
  }
}
