import type { Digest, WellFormedDigest } from '../../../oci/digest.ts'
import type { Tag } from '../../../oci/names.ts'
import type { DeletionPreviews, ExclusiveBytes, ManifestNode, TaggedNode } from '../../../ports/deletion-previews.ts'
import type { RepositoryRow } from '../../../ports/repositories.ts'
import type { RowId } from '../../../ports/row-id.ts'
import type { Queryable, Value } from '../database.ts'

interface NodeRow {
  readonly id: number
  readonly digest: string
  readonly media_type: string
  readonly size_bytes: number
  readonly artifact_type: string | null
  readonly subject_digest: string | null
}

interface UseRow {
  readonly blob_id: number
  readonly size_bytes: number | null
  readonly elsewhere: number | null
  readonly uses: number
}

const node = 'm.id, m.digest, m.media_type, m.size_bytes, m.artifact_type, m.subject_digest'
const ofRepository = `SELECT ${node} FROM manifests m WHERE m.account_id = $1 AND m.repository_id = $2`

const findByDigest = `${ofRepository} AND m.digest = $3`
const list = `${ofRepository} AND m.digest > $3 ORDER BY m.digest LIMIT $4`
const listReferrers = `${ofRepository} AND m.subject_digest = $3 ORDER BY m.digest LIMIT $4`

// The key of tags, and then the primary key of manifests. Nested, so that no planner begins with the manifests.
const findByTag = `
SELECT ${node} FROM manifests m WHERE m.account_id = $1 AND m.id = (
  SELECT manifest_id FROM tags WHERE account_id = $1 AND repository_id = $2 AND name = $3)`

// The key of tags, in its order, and the key of manifests for each.
const listTagged = `
SELECT t.name, ${node} FROM (
  SELECT name, manifest_id FROM tags WHERE account_id = $1 AND repository_id = $2 AND name > $3 ORDER BY name LIMIT $4) AS t
JOIN manifests m ON m.account_id = $1 AND m.id = t.manifest_id`

const listTagsOf = 'SELECT name FROM tags WHERE account_id = $1 AND manifest_id = $2 LIMIT $3'

const listChildren = `
SELECT ${node} FROM (
  SELECT child_id FROM manifest_entries WHERE account_id = $1 AND manifest_id = $2 LIMIT $3) AS e
JOIN manifests m ON m.account_id = $1 AND m.id = e.child_id`

const listParents = 'SELECT manifest_id FROM manifest_entries WHERE account_id = $1 AND child_id = $2 LIMIT $3'

const listBlobs = 'SELECT e.blob_id FROM manifest_entries e WHERE e.account_id = $1 AND e.manifest_id = $2'

// Index manifest_entries_of_blob: one probe below the repository, one above it, and a bounded range in it.
const usedElsewhere = (order: '<' | '>') => `
  SELECT 1 FROM manifest_entries e
  WHERE e.account_id = $1 AND e.blob_id = CAST(each.value AS bigint) AND e.repository_id ${order} $2 LIMIT 1`
const findUses = `
SELECT CAST(each.value AS bigint) AS blob_id,
  (SELECT b.size_bytes FROM blobs b WHERE b.account_id = $1 AND b.id = CAST(each.value AS bigint)) AS size_bytes,
  coalesce((${usedElsewhere('<')}), (${usedElsewhere('>')})) AS elsewhere,
  (SELECT count(*) FROM (
    SELECT 1 AS one FROM manifest_entries e
    WHERE e.account_id = $1 AND e.blob_id = CAST(each.value AS bigint) AND e.repository_id = $2 LIMIT $4) AS few) AS uses
FROM {each $3}`

const blobsAtOnce = 200

export class SqlDeletionPreviews implements DeletionPreviews {
  readonly #queries: Queryable

  constructor(queries: Queryable) {
    this.#queries = queries
  }

  findByDigest(repository: RepositoryRow, digest: Digest): Promise<ManifestNode | undefined> {
    return this.#find(findByDigest, [repository.accountId, repository.id, digest])
  }

  findByTag(repository: RepositoryRow, tag: Tag): Promise<ManifestNode | undefined> {
    return this.#find(findByTag, [repository.accountId, repository.id, tag])
  }

  list(repository: RepositoryRow, after: string, limit: number): Promise<ManifestNode[]> {
    return this.#list(list, [repository.accountId, repository.id, after, limit])
  }

  async listTagged(repository: RepositoryRow, after: string, limit: number): Promise<TaggedNode[]> {
    const values = [repository.accountId, repository.id, after, limit]
    const rows = await this.#queries.all<NodeRow & { name: string }>(listTagged, values)
    return rows
      .map((row) => ({ tag: row.name as Tag, node: toNode(row) }))
      .toSorted((one, other) => (one.tag < other.tag ? -1 : 1))
  }

  async listTagsOf(repository: RepositoryRow, manifestId: RowId, limit: number): Promise<Tag[]> {
    const rows = await this.#queries.all<{ name: string }>(listTagsOf, [repository.accountId, manifestId, limit])
    return rows.map((row) => row.name as Tag).toSorted()
  }

  listChildren(repository: RepositoryRow, manifestId: RowId, limit: number): Promise<ManifestNode[]> {
    return this.#list(listChildren, [repository.accountId, manifestId, limit])
  }

  async listParents(repository: RepositoryRow, manifestId: RowId, limit: number): Promise<RowId[]> {
    const values = [repository.accountId, manifestId, limit]
    const rows = await this.#queries.all<{ manifest_id: number }>(listParents, values)
    return rows.map((row) => row.manifest_id)
  }

  listReferrers(repository: RepositoryRow, subject: string, limit: number): Promise<ManifestNode[]> {
    return this.#list(listReferrers, [repository.accountId, repository.id, subject, limit])
  }

  async measureExclusive(repository: RepositoryRow, manifestIds: readonly RowId[]): Promise<ExclusiveBytes> {
    const uses = new Map<RowId, number>()
    for (const id of new Set(manifestIds)) {
      const rows = await this.#queries.all<{ blob_id: number | null }>(listBlobs, [repository.accountId, id])
      for (const blobId of new Set(rows.flatMap((row) => row.blob_id ?? []))) {
        uses.set(blobId, (uses.get(blobId) ?? 0) + 1)
      }
    }
    const total = { blobs: 0, bytes: 0 }
    const ids = [...uses.keys()]
    const usesMax = Math.max(0, ...uses.values())
    for (let at = 0; at < ids.length; at += blobsAtOnce) {
      const some = JSON.stringify(ids.slice(at, at + blobsAtOnce))
      const values = [repository.accountId, repository.id, some, usesMax + 1]
      for (const row of await this.#queries.all<UseRow>(findUses, values)) {
        if (row.elsewhere !== null || row.uses > (uses.get(row.blob_id) ?? 0)) continue
        total.blobs += 1
        total.bytes += row.size_bytes ?? 0
      }
    }
    return total
  }

  async #find(sql: string, values: readonly Value[]): Promise<ManifestNode | undefined> {
    const row = await this.#queries.first<NodeRow>(sql, values)
    return row && toNode(row)
  }

  async #list(sql: string, values: readonly Value[]): Promise<ManifestNode[]> {
    return (await this.#queries.all<NodeRow>(sql, values)).map(toNode)
  }
}

function toNode(row: NodeRow): ManifestNode {
  return {
    id: row.id,
    digest: row.digest as Digest,
    mediaType: row.media_type,
    sizeBytes: row.size_bytes,
    artifactType: row.artifact_type ?? undefined,
    subject: (row.subject_digest ?? undefined) as WellFormedDigest | undefined,
  }
}
