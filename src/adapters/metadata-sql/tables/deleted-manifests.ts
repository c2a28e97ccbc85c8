import type { Digest, WellFormedDigest } from '../../../oci/digest.ts'
import type { Tag } from '../../../oci/names.ts'
import type { Actor } from '../../../ports/actor.ts'
import type {
  DeletedBatch,
  DeletedContent,
  DeletedManifest,
  DeletedManifests,
  DeletedPosition,
  DeletionCause,
} from '../../../ports/deleted-manifests.ts'
import type { RepositoryRow } from '../../../ports/repositories.ts'
import type { RowId } from '../../../ports/row-id.ts'
import type { Queryable } from '../database.ts'

interface ListedRow {
  readonly id: number
  readonly digest: string
  readonly media_type: string
  readonly size_bytes: number
  readonly artifact_type: string | null
  readonly tags: string
  readonly deleted_at: number
  readonly deleted_by: string
  readonly cause: string
}

interface ContentRow extends ListedRow {
  readonly subject_digest: string | null
  readonly annotations: string | null
  readonly payload: Uint8Array
}

interface EntryRow {
  readonly digest: string
  readonly blob_id: number | null
  readonly is_manifest: number
  readonly damaged_at: number | null
}

interface AgedRow {
  readonly id: number
  readonly account_id: number
  readonly repository_id: number
  readonly deleted_at: number
  readonly state: string
}

const listed =
  'd.id, d.digest, d.media_type, d.size_bytes, d.artifact_type, d.tags, d.deleted_at, d.deleted_by, d.cause'

// Index deleted_manifests_of_repository, backwards.
const list = `
SELECT ${listed} FROM deleted_manifests d
WHERE d.account_id = $1 AND d.repository_id = $2 AND (d.deleted_at, d.id) < ($3, $4)
ORDER BY d.deleted_at DESC, d.id DESC LIMIT $5`

// Without `WHERE true`, SQLite would take the ON of the upsert for the ON of a join.
const keepManifest = `
INSERT INTO deleted_manifests (account_id, repository_id, digest, media_type, size_bytes, subject_digest, artifact_type,
                               annotations, payload, tags, deleted_at, deleted_by, cause)
SELECT account_id, repository_id, digest, media_type, size_bytes, subject_digest, artifact_type, annotations, payload,
  $3, {now}, $4, $5
FROM manifests WHERE account_id = $1 AND id = $2
ON CONFLICT (account_id, repository_id, digest) DO UPDATE
SET media_type = excluded.media_type, tags = excluded.tags, deleted_at = excluded.deleted_at,
  deleted_by = excluded.deleted_by, cause = excluded.cause
RETURNING id`

const keepEntries = `
INSERT INTO deleted_entries (account_id, deleted_id, digest, blob_id, is_manifest)
SELECT account_id, $3, digest, blob_id, CASE WHEN child_id IS NULL THEN 0 ELSE 1 END FROM manifest_entries WHERE account_id = $1 AND manifest_id = $2
ON CONFLICT (account_id, deleted_id, digest) DO UPDATE SET blob_id = excluded.blob_id, is_manifest = excluded.is_manifest`

const findContent = `
SELECT ${listed}, d.subject_digest, d.annotations, d.payload FROM deleted_manifests d
WHERE d.account_id = $1 AND d.repository_id = $2 AND d.digest = $3 {for update d}`

const listEntries = `
SELECT e.digest, e.blob_id, e.is_manifest, b.damaged_at FROM deleted_entries e
LEFT JOIN blobs b ON b.account_id = e.account_id AND b.id = e.blob_id
WHERE e.account_id = $1 AND e.deleted_id = $2`

const listBlobs = `
SELECT e.blob_id, d.deleted_at FROM deleted_manifests d
JOIN deleted_entries e ON e.account_id = d.account_id AND e.deleted_id = d.id
WHERE d.account_id = $1 AND d.id = $2`

// The leases of the blobs began with the deletion, and so does their place in the queue. `DO UPDATE` waits for a collector that
// still sees the copy and is about to take the blob off the queue; DO NOTHING would not.
const enqueueBlobs = `
INSERT INTO blob_queue (account_id, blob_id, queued_at)
SELECT $1, CAST(each.value AS bigint), $3 FROM {each $2} WHERE true
ON CONFLICT (account_id, blob_id) DO UPDATE SET queued_at = excluded.queued_at`

const remove = 'DELETE FROM deleted_manifests WHERE account_id = $1 AND id = $2'

// Index deleted_manifests_by_age, in its order. Skips copies that another transaction undeletes.
const lockAged = `
SELECT d.id, d.account_id, d.repository_id, d.deleted_at, a.state
FROM deleted_manifests d JOIN accounts a ON a.id = d.account_id
WHERE (d.deleted_at, d.id) > ($2, $3) AND d.deleted_at <= {now} - $1
ORDER BY d.deleted_at, d.id LIMIT $4 {for update d skip locked}`

/** After every deletion. */
const theEnd: DeletedPosition = { deletedAt: Number.MAX_SAFE_INTEGER, id: Number.MAX_SAFE_INTEGER }

export class SqlDeletedManifests implements DeletedManifests {
  readonly #queries: Queryable

  constructor(queries: Queryable) {
    this.#queries = queries
  }

  async list(repository: RepositoryRow, before: DeletedPosition = theEnd, limit: number): Promise<DeletedManifest[]> {
    const values = [repository.accountId, repository.id, before.deletedAt, before.id, limit]
    const rows = await this.#queries.all<ListedRow>(list, values)
    return rows.map(toDeletedManifest)
  }

  async keep(
    { accountId }: RepositoryRow,
    manifestId: RowId,
    { actor, cause, tags }: { readonly actor: Actor; readonly cause: DeletionCause; readonly tags: readonly Tag[] },
  ): Promise<void> {
    const values = [accountId, manifestId, JSON.stringify(tags), actor.subject, cause]
    const [kept] = await this.#queries.returning<{ id: number }>(keepManifest, values)
    if (kept !== undefined) await this.#queries.run(keepEntries, [accountId, manifestId, kept.id])
  }

  async findLocked({ accountId, id }: RepositoryRow, digest: string): Promise<DeletedContent | undefined> {
    const row = await this.#queries.first<ContentRow>(findContent, [accountId, id, digest])
    if (row === undefined) return undefined
    const entries = await this.#queries.all<EntryRow>(listEntries, [accountId, row.id])
    return {
      id: row.id,
      manifest: {
        digest: row.digest as Digest,
        mediaType: row.media_type,
        sizeBytes: row.size_bytes,
        bytes: row.payload,
        subject: (row.subject_digest ?? undefined) as WellFormedDigest | undefined,
        artifactType: row.artifact_type ?? undefined,
        annotations: row.annotations === null ? undefined : JSON.parse(row.annotations),
      },
      entries: entries.map((entry) => ({
        digest: entry.digest,
        blobId: entry.blob_id ?? undefined,
        isManifest: entry.is_manifest === 1,
        isDamaged: entry.damaged_at !== null,
      })),
      tags: toTags(row.tags),
    }
  }

  async remove({ accountId }: RepositoryRow, id: RowId): Promise<void> {
    const rows = await this.#queries.all<{ blob_id: number | null; deleted_at: number }>(listBlobs, [accountId, id])
    // Filtered and sorted here: otherwise SQLite would read all entries of the account from another index.
    const blobIds = rows.flatMap((row) => row.blob_id ?? []).toSorted((one, other) => one - other)
    const deletedAt = rows[0]?.deleted_at ?? 0
    if (blobIds.length > 0) await this.#queries.run(enqueueBlobs, [accountId, JSON.stringify(blobIds), deletedAt])
    await this.#queries.run(remove, [accountId, id])
  }

  async expire(keepMs: number, after: DeletedPosition | undefined, limit: number): Promise<DeletedBatch> {
    const values = [keepMs, after?.deletedAt ?? 0, after?.id ?? 0, limit]
    const aged = await this.#queries.all<AgedRow>(lockAged, values)
    const due = aged.filter((row) => row.state === 'enabled')
    for (const row of due) await this.remove({ accountId: row.account_id, id: row.repository_id }, row.id)
    const last = aged.at(-1)
    return { removed: due.length, next: last && { deletedAt: last.deleted_at, id: last.id } }
  }
}

function toDeletedManifest(row: ListedRow): DeletedManifest {
  return {
    id: row.id,
    digest: row.digest as Digest,
    mediaType: row.media_type,
    sizeBytes: row.size_bytes,
    artifactType: row.artifact_type ?? undefined,
    tags: toTags(row.tags),
    deletedAt: row.deleted_at,
    deletedBy: row.deleted_by,
    cause: row.cause as DeletionCause,
  }
}

function toTags(json: string): Tag[] {
  return JSON.parse(json) as Tag[]
}
