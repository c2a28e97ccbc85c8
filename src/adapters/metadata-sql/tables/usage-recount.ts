import type { RowId } from '../../../ports/row-id.ts'
import type { UsageRecount } from '../../../ports/usage.ts'
import type { Database, Queryable } from '../database.ts'
import { readUsage } from './usage.ts'
import { ImmediateUsageLog, type UsageChange } from './usage-log.ts'

/** How many rows one statement reads. With SQLite, requests wait for a statement. */
const rowsAtOnce = 500

/** How many repositories are read at one moment. */
const repositoriesAtOnce = 100

const listNext = 'SELECT r.id, r.account_id FROM repositories r WHERE r.id > $1 ORDER BY r.id LIMIT $2'

// The key of manifests (digest), in its order.
const listManifests = `
SELECT digest, size_bytes, pushed_at FROM manifests
WHERE account_id = $1 AND repository_id = $2 AND digest > $3 ORDER BY digest LIMIT $4`

// The key of tags.
const listTags = `
SELECT name FROM tags WHERE account_id = $1 AND repository_id = $2 AND name > $3 ORDER BY name LIMIT $4`

// The key of blob_links.
const listLinks = `
SELECT l.blob_id, (SELECT b.size_bytes FROM blobs b WHERE b.id = l.blob_id) AS size_bytes FROM blob_links l
WHERE l.account_id = $1 AND l.repository_id = $2 AND l.blob_id > $3 ORDER BY l.blob_id LIMIT $4`

const findRecounts = 'SELECT recounts FROM repository_usage WHERE account_id = $1 AND repository_id = $2'

const ensureRow = `
INSERT INTO repository_usage (account_id, repository_id, manifests, tags, bytes, manifest_bytes, owned_bytes, pushed_at)
SELECT r.account_id, r.id, 0, 0, 0, 0, 0, 0 FROM repositories r WHERE r.account_id = $1 AND r.id = $2
ON CONFLICT (account_id, repository_id) DO NOTHING`

// The compare-and-set: another process may have counted the repository meanwhile.
const claimCorrection = `
UPDATE repository_usage SET recounts = recounts + 1 WHERE account_id = $1 AND repository_id = $2 AND recounts = $3`

interface ManifestRow {
  readonly digest: string
  readonly size_bytes: number
  readonly pushed_at: number
}

interface LinkRow {
  readonly blob_id: number
  readonly size_bytes: number
}

type Key = readonly [accountId: number, id: number]

interface Counted {
  readonly key: Key
  readonly change: UsageChange
  readonly recounts: number
}

export class SqlUsageRecount implements UsageRecount {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  async recountNext(after: RowId): Promise<RowId | undefined> {
    const next = await this.#database.all<{ id: number; account_id: number }>(listNext, [after, repositoriesAtOnce])
    if (next.length === 0) return undefined
    const counted = await this.#database.snapshot(async (queries) => {
      const differences: Counted[] = []
      for (const row of next) {
        const difference = await count(queries, [row.account_id, row.id])
        if (difference !== undefined) differences.push(difference)
      }
      return differences
    })
    await this.#database.transaction(async (queries) => {
      for (const one of counted) await correct(queries, one)
    })
    return next.at(-1)?.id
  }
}

async function correct(queries: Queryable, { key, recounts, change }: Counted): Promise<void> {
  await queries.run(ensureRow, key)
  if ((await queries.run(claimCorrection, [...key, recounts])) === 0) return
  await new ImmediateUsageLog(queries).record({ accountId: key[0], id: key[1] }, change)
}

/** The difference between what the repository holds and what the sums say, at one moment. */
async function count(queries: Queryable, key: Key): Promise<Counted | undefined> {
  const usage = await readUsage(queries, key)
  const row = await queries.first<{ recounts: number }>(findRecounts, key)
  const counted = await countAll(queries, key)
  const manifestBytes = counted.manifestBytes - usage.manifest_bytes
  const change = {
    manifests: counted.manifests - usage.manifests,
    tags: counted.tags - usage.tags,
    bytes: counted.manifestBytes + counted.blobBytes - usage.bytes,
    manifestBytes,
    storedBytes: manifestBytes,
  }
  if (Object.values(change).every((difference) => difference === 0)) return undefined
  return { key, change: { ...change, pushedAt: counted.pushedAt }, recounts: row?.recounts ?? 0 }
}

async function countAll(queries: Queryable, key: Key) {
  let [manifests, tags, manifestBytes, blobBytes, pushedAt] = [0, 0, 0, 0, 0]
  for await (const page of readPages<ManifestRow>(queries, listManifests, key, '', (last) => last.digest)) {
    manifests += page.length
    for (const manifest of page) manifestBytes += manifest.size_bytes
    for (const manifest of page) pushedAt = Math.max(pushedAt, manifest.pushed_at)
  }
  for await (const page of readPages<{ name: string }>(queries, listTags, key, '', (last) => last.name)) {
    tags += page.length
  }
  for await (const page of readPages<LinkRow>(queries, listLinks, key, 0, (last) => last.blob_id)) {
    for (const link of page) blobBytes += link.size_bytes
  }
  return { manifests, tags, manifestBytes, blobBytes, pushedAt }
}

/** Between two pages, the server handles requests. */
async function* readPages<Row extends object>(
  queries: Queryable,
  statement: string,
  key: Key,
  start: string | number,
  keyOf: (last: Row) => string | number,
): AsyncGenerator<readonly Row[]> {
  for (let after: string | number | undefined = start; after !== undefined; ) {
    const page: readonly Row[] = await queries.all<Row>(statement, [...key, after, rowsAtOnce])
    yield page
    const last = page.length < rowsAtOnce ? undefined : page.at(-1)
    after = last && keyOf(last)
    await new Promise((resolve) => setImmediate(resolve))
  }
}
