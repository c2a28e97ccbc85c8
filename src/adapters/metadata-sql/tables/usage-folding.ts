import type { RowId } from '../../../ports/row-id.ts'
import type { AccountChange, FoldedChanges } from '../../../ports/usage.ts'
import type { Queryable } from '../database.ts'

// Adds appended changes to the rows of sums. Rows are locked in this order: changes, blobs, sums of repositories, sums of
// accounts; in each table by id. So two transactions that fold cannot deadlock.

interface Change {
  readonly id: number
  readonly account_id: number
  readonly repository_id: number
  readonly blob_id: number
  readonly images: number
  readonly manifests: number
  readonly tags: number
  readonly bytes: number
  readonly manifest_bytes: number
  readonly owned_bytes: number
  readonly stored_bytes: number
  readonly pushed_at: number
}

interface LockedBlob {
  readonly id: number
  readonly account_id: number
  readonly size_bytes: number
  readonly owner_id: number | null
}

interface LinksOfBlob {
  readonly id: number
  readonly first: number | null
  readonly second: number | null
}

type Sums = Omit<Change, 'id' | 'blob_id'>
type Counter = Exclude<keyof Sums, 'account_id' | 'repository_id' | 'pushed_at'>

const counters = ['images', 'manifests', 'tags', 'bytes', 'manifest_bytes', 'owned_bytes', 'stored_bytes'] as const

const lockChanges = 'SELECT * FROM usage_changes c ORDER BY c.id LIMIT $1 {for update c skip locked}'

const removeChanges = `
DELETE FROM usage_changes WHERE id IN (SELECT CAST(each.value AS {number}) FROM {each text $1})`

// Pushes that link the blob do not wait for this lock.
const lockBlobs = `
SELECT b.id, b.account_id, b.size_bytes, b.owner_id FROM blobs b
WHERE b.id IN (SELECT CAST(each.value AS {number}) FROM {each text $1}) ORDER BY b.id {for no key update b}`

// After the lock, in a statement of its own. Index blob_links_by_blob: its first and its second link.
const linkOf = (position: number) => `(
  SELECT l.repository_id FROM blob_links l WHERE l.account_id = b.account_id AND l.blob_id = b.id
  ORDER BY l.repository_id LIMIT 1 OFFSET ${position})`
const listOwners = `
SELECT b.id, ${linkOf(0)} AS first, ${linkOf(1)} AS second
FROM {each text $1} JOIN blobs b ON b.id = CAST(each.value AS {number})`

const setOwner = `
UPDATE blobs SET owner_id = $1 WHERE id IN (SELECT CAST(each.value AS {number}) FROM {each text $2})`

const listNextBlobs = 'SELECT b.id, b.owner_id FROM blobs b WHERE b.id > $1 ORDER BY b.id LIMIT $2'

const value = (column: string) => `CAST(each.value ->> '${column}' AS bigint)`
const plus = (table: string, column: string) => `${column} = ${table}.${column} + excluded.${column}`

const ofRepository = ['manifests', 'tags', 'bytes', 'manifest_bytes', 'owned_bytes']
// A repository that was removed has no row any more.
const addToRepositories = `
INSERT INTO repository_usage (account_id, repository_id, ${ofRepository.join(', ')}, pushed_at)
SELECT r.account_id, r.id, ${ofRepository.map(value).join(', ')}, ${value('pushed_at')}
FROM {each $1} JOIN repositories r ON r.id = ${value('repository_id')}
WHERE true
ON CONFLICT (account_id, repository_id) DO UPDATE
SET ${ofRepository.map((column) => plus('repository_usage', column)).join(', ')},
  pushed_at = CASE WHEN excluded.pushed_at > repository_usage.pushed_at THEN excluded.pushed_at
    ELSE repository_usage.pushed_at END`

const ofAccount = ['images', 'manifests', 'tags', 'bytes', 'stored_bytes']
const addToAccounts = `
INSERT INTO account_usage (account_id, ${ofAccount.join(', ')})
SELECT a.id, ${ofAccount.map(value).join(', ')}
FROM {each $1} JOIN accounts a ON a.id = ${value('account_id')}
WHERE true
ON CONFLICT (account_id) DO UPDATE SET ${ofAccount.map((column) => plus('account_usage', column)).join(', ')}
RETURNING account_id, (SELECT name FROM accounts a WHERE a.id = account_usage.account_id) AS name, ${ofAccount.join(', ')}`

type AccountRow = { readonly account_id: number; readonly name: string } & Readonly<Record<string, number>>

export async function foldChanges(queries: Queryable, limit: number): Promise<FoldedChanges> {
  const changes = await queries.all<Change>(lockChanges, [limit])
  if (changes.length === 0) return { count: 0, accounts: [] }
  const touched = new Set(changes.flatMap(({ blob_id: id }) => (id === 0 ? [] : [id])))
  const moves = await moveOwners(queries, [...touched])
  const accounts = await addSums(queries, [...changes, ...moves])
  await queries.run(removeChanges, [toTexts(changes.map(({ id }) => id))])
  return { count: changes.length, accounts }
}

/** The blobs that were stored before usage was recorded have no owner yet. */
export async function countBlobs(queries: Queryable, after: RowId, limit: number): Promise<RowId | undefined> {
  const blobs = await queries.all<Pick<LockedBlob, 'id' | 'owner_id'>>(listNextBlobs, [after, limit])
  const uncounted = blobs.filter((blob) => blob.owner_id === null).map(({ id }) => id)
  await addSums(queries, await moveOwners(queries, uncounted))
  return blobs.length < limit ? undefined : blobs.at(-1)?.id
}

/** Sets the owner of each blob to the only repository that links it. Returns what that changes. */
async function moveOwners(queries: Queryable, blobIds: readonly RowId[]): Promise<Sums[]> {
  if (blobIds.length === 0) return []
  const moves: Sums[] = []
  const locked = await queries.all<LockedBlob>(lockBlobs, [toTexts(blobIds)])
  const links = new Map<RowId, LinksOfBlob>()
  for (const row of await queries.all<LinksOfBlob>(listOwners, [toTexts(blobIds)])) links.set(row.id, row)
  const byOwner = new Map<RowId, RowId[]>()
  for (const { id, account_id: accountId, size_bytes: bytes, owner_id: before } of locked) {
    const { first, second } = links.get(id) ?? { first: null, second: null }
    const owner = second === null ? (first ?? 0) : 0
    if (owner === before) continue
    byOwner.set(owner, [...(byOwner.get(owner) ?? []), id])
    if (before === null) moves.push(sumsOf(accountId, owner, { stored_bytes: bytes }))
    else if (before > 0) moves.push(sumsOf(accountId, before, { owned_bytes: -bytes }))
    if (owner > 0) moves.push(sumsOf(accountId, owner, { owned_bytes: bytes }))
  }
  for (const [owner, ids] of byOwner) await queries.run(setOwner, [owner, toTexts(ids)])
  return moves
}

async function addSums(queries: Queryable, changes: readonly Sums[]): Promise<AccountChange[]> {
  if (changes.length === 0) return []
  const ofRepositories = sumBy(changes, 'repository_id').filter(({ repository_id: id }) => id > 0)
  if (ofRepositories.length > 0) await queries.run(addToRepositories, [JSON.stringify(ofRepositories)])
  const ofAccounts = sumBy(changes, 'account_id')
  const rows = await queries.returning<AccountRow>(addToAccounts, [JSON.stringify(ofAccounts)])
  return rows.map((row) => {
    const change = ofAccounts.find(({ account_id: id }) => id === row.account_id)
    const usage = (minus: Readonly<Partial<Record<Counter, number>>> | undefined) => ({
      images: (row['images'] ?? 0) - (minus?.images ?? 0),
      manifests: (row['manifests'] ?? 0) - (minus?.manifests ?? 0),
      tags: (row['tags'] ?? 0) - (minus?.tags ?? 0),
      logicalBytes: (row['bytes'] ?? 0) - (minus?.bytes ?? 0),
      storedBytes: (row['stored_bytes'] ?? 0) - (minus?.stored_bytes ?? 0),
    })
    return { accountId: row.account_id, account: row.name, before: usage(change), after: usage(undefined) }
  })
}

/** One sum for each repository or account, in the order of the ids. */
function sumBy(changes: readonly Sums[], key: 'repository_id' | 'account_id'): Sums[] {
  const sums = new Map<number, Record<Counter, number> & Sums>()
  for (const change of changes) {
    const sum = sums.get(change[key]) ?? sumsOf(change.account_id, change.repository_id, {})
    for (const counter of counters) sum[counter] += change[counter]
    const pushedAt = Math.max(sum.pushed_at, change.pushed_at)
    sums.set(change[key], { ...sum, pushed_at: pushedAt })
  }
  return [...sums.values()].sort((one, other) => one[key] - other[key])
}

function sumsOf(
  accountId: RowId,
  repositoryId: RowId,
  part: Partial<Record<Counter, number>>,
): Record<Counter, number> & Sums {
  return {
    account_id: accountId,
    repository_id: repositoryId,
    images: 0,
    manifests: 0,
    tags: 0,
    bytes: 0,
    manifest_bytes: 0,
    owned_bytes: 0,
    stored_bytes: 0,
    pushed_at: 0,
    ...part,
  }
}

function toTexts(ids: readonly RowId[]): string {
  return JSON.stringify(ids.map(String))
}
