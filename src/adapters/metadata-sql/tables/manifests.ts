import { andThen } from '../../../lib/and-then.ts'
import type { Digest } from '../../../oci/digest.ts'
import { Unavailable } from '../../../oci/errors.ts'
import type { Reference } from '../../../oci/names.ts'
import type { Awaitable } from '../../../ports/awaitable.ts'
import type {
  Found,
  ManifestEntry,
  ManifestSummary,
  Manifests,
  NewManifest,
  Referrer,
  ReferrerBatch,
  ReferrerQuery,
  StoredManifest,
} from '../../../ports/manifests.ts'
import type { PullMark } from '../../../ports/pulls.ts'
import type { RepositoryKey, RepositoryRow } from '../../../ports/repositories.ts'
import type { RowId } from '../../../ports/row-id.ts'
import type { Queryable } from '../database.ts'
import type { UsageLog } from './usage-log.ts'

// Look-ups are nested, not joined: each step finds one row by its whole key. SQLite needs a third of the time of a join, and
// PostgreSQL cannot choose another plan because a repository is large.
const repositoryId = '(SELECT id FROM repositories WHERE account_id = $1 AND name = $2)'

// The keys of repositories and tags (both by name), then the primary key of manifests.
const findByTag = `
SELECT id, repository_id, digest, media_type, size_bytes, payload FROM manifests
WHERE account_id = $1 AND id = (
  SELECT manifest_id FROM tags WHERE account_id = $1 AND repository_id = ${repositoryId} AND name = $3)`

// The keys of repositories (name) and manifests (digest).
const findByDigest = `
SELECT id, repository_id, digest, media_type, size_bytes, payload FROM manifests
WHERE account_id = $1 AND repository_id = ${repositoryId} AND digest = $3`

const describeByTag = findByTag.replace(', payload', '')
const describeByDigest = findByDigest.replace(', payload', '')

/** The statement for referrers returns texts only up to this length. */
const shortTextBytesMax = 2048
const textBytes = '(coalesce(octet_length(artifact_type), 0) + coalesce(octet_length(annotations), 0))'
const ifShort = (column: string) => `CASE WHEN ${textBytes} <= ${shortTextBytesMax} THEN ${column} END AS ${column}`

// Index manifests_by_subject, in the order of the result. The engines know the length of a text without reading it. Long texts
// are read one by one, with `findTexts`.
const listReferrers = `
SELECT id, digest, media_type, size_bytes, ${textBytes} AS text_bytes, ${ifShort('artifact_type')}, ${ifShort('annotations')}
FROM manifests
WHERE account_id = $1 AND repository_id = ${repositoryId} AND subject_digest = $3 AND digest > $4
  AND ($5 = 0 OR artifact_type {in $6})
ORDER BY digest LIMIT $7`

const findTexts = 'SELECT artifact_type, annotations FROM manifests WHERE account_id = $1 AND id = $2'

// The key of manifests (digest), once for each digest.
const lockByDigests = `
SELECT each.value AS digest, (
  SELECT m.id FROM manifests m
  WHERE m.account_id = $1 AND m.repository_id = $2 AND m.digest = each.value {for key share m}) AS id
FROM {each text $3}`

const insertManifest = `
INSERT INTO manifests (account_id, repository_id, digest, media_type, size_bytes,
                       subject_digest, artifact_type, annotations, payload, pushed_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, {now})
ON CONFLICT (account_id, repository_id, digest) DO NOTHING
RETURNING id`

const updateMediaType = `
UPDATE manifests SET media_type = $4 WHERE account_id = $1 AND repository_id = $2 AND digest = $3 RETURNING id`

// Without `WHERE true`, SQLite would take the ON of the upsert for the ON of a join.
const upsertEntries = `
INSERT INTO manifest_entries (account_id, repository_id, manifest_id, digest, blob_id, child_id)
SELECT $1, $2, $3, each.value ->> 'digest',
       CAST(each.value ->> 'blobId' AS bigint), CAST(each.value ->> 'childId' AS bigint)
FROM {each $4}
WHERE true
ON CONFLICT (account_id, manifest_id, digest) DO UPDATE SET blob_id = excluded.blob_id, child_id = excluded.child_id`

const saveTriesMax = 3

interface SummaryRow {
  readonly digest: string
  readonly media_type: string
  readonly size_bytes: number
}

interface FoundRow extends SummaryRow {
  readonly id: number
  readonly repository_id: number
  /** Created at the first read of the row, and cached with it. */
  mark?: PullMark
}

interface ManifestRow extends FoundRow {
  readonly payload: Uint8Array
}

interface TextsRow {
  readonly artifact_type: string | null
  readonly annotations: string | null
}

/** The texts are null if they are long. */
interface ReferrerRow extends SummaryRow, TextsRow {
  readonly id: number
  readonly text_bytes: number
}

/** Estimated size of a referrer as JSON, without its texts. */
const referrerBytes = 250

export class SqlManifests implements Manifests {
  readonly #queries: Queryable
  readonly #usage: UsageLog

  constructor(queries: Queryable, usage: UsageLog) {
    this.#queries = queries
    this.#usage = usage
  }

  find(
    { accountId, repository }: RepositoryKey,
    reference: Reference,
  ): Awaitable<(StoredManifest & Found) | undefined> {
    const row =
      'tag' in reference
        ? this.#queries.lookUp<ManifestRow>(findByTag, [accountId, repository, reference.tag])
        : this.#queries.lookUp<ManifestRow>(findByDigest, [accountId, repository, reference.digest])
    return andThen(row, (found) => found && toStoredManifest(found))
  }

  describe(
    { accountId, repository }: RepositoryKey,
    reference: Reference,
  ): Awaitable<(ManifestSummary & Found) | undefined> {
    const row =
      'tag' in reference
        ? this.#queries.lookUp<FoundRow>(describeByTag, [accountId, repository, reference.tag])
        : this.#queries.lookUp<FoundRow>(describeByDigest, [accountId, repository, reference.digest])
    return andThen(row, (found) => found && toFoundSummary(found))
  }

  async listReferrers(repositoryKey: RepositoryKey, query: ReferrerQuery): Promise<ReferrerBatch> {
    const rows = await this.#queries.all<ReferrerRow>(listReferrers, [
      repositoryKey.accountId,
      repositoryKey.repository,
      query.subject,
      query.after ?? '',
      query.artifactTypes.length,
      JSON.stringify(query.artifactTypes),
      query.limit,
    ])
    const referrers: Referrer[] = []
    let bytes = 0
    for (const row of rows) {
      bytes += referrerBytes + row.text_bytes
      if (bytes > query.bytesMax && referrers.length > 0) return { referrers, hasMore: true }
      const texts = row.text_bytes <= shortTextBytesMax ? row : await this.#findTexts(repositoryKey, row)
      // The manifest was deleted after the first statement.
      if (texts === undefined) continue
      referrers.push({
        ...toSummary(row),
        artifactType: texts.artifact_type ?? undefined,
        annotationsJson: texts.annotations ?? undefined,
      })
    }
    return { referrers, hasMore: rows.length === query.limit && referrers.length > 0 }
  }

  #findTexts({ accountId }: RepositoryKey, { id }: ReferrerRow): Promise<TextsRow | undefined> {
    return this.#queries.first<TextsRow>(findTexts, [accountId, id])
  }

  async lockByDigests(repository: RepositoryRow, digests: readonly string[]): Promise<ReadonlyMap<string, RowId>> {
    const values = [repository.accountId, repository.id, JSON.stringify(digests.toSorted())]
    const ids = new Map<string, RowId>()
    for (const { digest, id } of await this.#queries.all<{ digest: string; id: number | null }>(
      lockByDigests,
      values,
    )) {
      if (id !== null) ids.set(digest, id)
    }
    return ids
  }

  async findLocked(repository: RepositoryRow, digest: Digest): Promise<RowId | undefined> {
    const row = await this.#queries.first<{ id: number }>(
      `SELECT m.id FROM manifests m WHERE m.account_id = $1 AND m.repository_id = $2 AND m.digest = $3 {for update m}`,
      [repository.accountId, repository.id, digest],
    )
    return row?.id
  }

  async save(repository: RepositoryRow, manifest: NewManifest): Promise<{ id: RowId; isNew: boolean }> {
    const key = [repository.accountId, repository.id, manifest.digest, manifest.mediaType]
    // Of two transactions that push the same manifest, one waits for the other and then updates its row. The UPDATE finds no
    // row if a third transaction deleted it meanwhile; then the loop tries again.
    for (let tries = 0; tries < saveTriesMax; tries += 1) {
      const added = await this.#queries.returning<{ id: number }>(insertManifest, [
        ...key,
        manifest.sizeBytes,
        manifest.subject ?? null,
        manifest.artifactType ?? null,
        manifest.annotations === undefined ? null : JSON.stringify(manifest.annotations),
        manifest.bytes,
      ])
      if (added[0] !== undefined) {
        const bytes = manifest.sizeBytes
        const change = { manifests: 1, bytes, manifestBytes: bytes, storedBytes: bytes, pushedAt: 'now' } as const
        await this.#usage.record(repository, change)
        return { id: added[0].id, isNew: true }
      }
      const updated = await this.#queries.returning<{ id: number }>(updateMediaType, key)
      if (updated[0] !== undefined) {
        await this.#usage.record(repository, { pushedAt: 'now' })
        return { id: updated[0].id, isNew: false }
      }
    }
    throw new Unavailable('metadata-store', {
      cause: new Error(`manifest ${manifest.digest} is inserted and deleted repeatedly`),
    })
  }

  async saveEntries(repository: RepositoryRow, manifestId: RowId, entries: readonly ManifestEntry[]): Promise<void> {
    if (entries.length === 0) return
    await this.#queries.run(upsertEntries, [repository.accountId, repository.id, manifestId, JSON.stringify(entries)])
  }

  async fillEntries(repository: RepositoryRow, digest: Digest, childId: RowId): Promise<void> {
    await this.#queries.run(
      `UPDATE manifest_entries SET child_id = $4
       WHERE account_id = $1 AND repository_id = $2 AND digest = $3 AND blob_id IS NULL AND child_id IS NULL`,
      [repository.accountId, repository.id, digest, childId],
    )
  }

  async isListed(repository: RepositoryRow, manifestId: RowId): Promise<boolean> {
    const row = await this.#queries.first(
      'SELECT 1 AS found FROM manifest_entries WHERE account_id = $1 AND child_id = $2 LIMIT 1',
      [repository.accountId, manifestId],
    )
    return row !== undefined
  }

  async detachFromIndexes(repository: RepositoryRow, manifestId: RowId): Promise<void> {
    await this.#queries.run('UPDATE manifest_entries SET child_id = NULL WHERE account_id = $1 AND child_id = $2', [
      repository.accountId,
      manifestId,
    ])
  }

  async listBlobs(repository: RepositoryRow, manifestId: RowId): Promise<RowId[]> {
    const rows = await this.#queries.all<{ blob_id: number | null }>(
      'SELECT blob_id FROM manifest_entries WHERE account_id = $1 AND manifest_id = $2',
      [repository.accountId, manifestId],
    )
    // Filtered and sorted here: for a filter or an ORDER BY, SQLite would read all entries of the account from another index.
    return rows.flatMap(({ blob_id: id }) => (id === null ? [] : [id])).toSorted((one, other) => one - other)
  }

  async remove(repository: RepositoryRow, manifestId: RowId): Promise<void> {
    const removed = await this.#queries.returning<{ size_bytes: number }>(
      'DELETE FROM manifests WHERE account_id = $1 AND id = $2 RETURNING size_bytes',
      [repository.accountId, manifestId],
    )
    for (const { size_bytes: bytes } of removed) {
      const change = { manifests: -1, bytes: -bytes, manifestBytes: -bytes, storedBytes: -bytes }
      await this.#usage.record(repository, change)
    }
  }
}

function toSummary(row: SummaryRow): ManifestSummary {
  return { digest: row.digest as Digest, mediaType: row.media_type, sizeBytes: row.size_bytes }
}

function toFoundSummary(row: FoundRow): ManifestSummary & Found {
  const { digest, mediaType, sizeBytes } = toSummary(row)
  return { digest, mediaType, sizeBytes, mark: markOf(row) }
}

function toStoredManifest(row: ManifestRow): StoredManifest & Found {
  const { digest, mediaType, sizeBytes } = toSummary(row)
  return { digest, mediaType, sizeBytes, bytes: row.payload, mark: markOf(row) }
}

function markOf(row: FoundRow): PullMark {
  row.mark ??= { repositoryId: row.repository_id, manifestId: row.id, notedIn: -1 }
  return row.mark
}
