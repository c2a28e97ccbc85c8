import type { Digest } from '../../../oci/digest.ts'
import { Unavailable } from '../../../oci/errors.ts'
import type { Reference } from '../../../oci/names.ts'
import type {
  ManifestEntry,
  ManifestSummary,
  Manifests,
  NewManifest,
  Referrer,
  ReferrerBatch,
  ReferrerQuery,
  StoredManifest,
} from '../../../ports/manifests.ts'
import type { RepositoryRow, Scope } from '../../../ports/repositories.ts'
import type { RowId } from '../../../ports/row-id.ts'
import type { Queryable } from '../database.ts'
import { type FoundRow, toFound } from './found-rows.ts'
import {
  describeByDigest,
  describeByTag,
  findByDigest,
  findByTag,
  findTexts,
  lockManifests,
  referrersOf,
  renameManifest,
  saveEntries,
  saveManifest,
} from './manifest-statements.ts'

const saveTriesMax = 3

interface SummaryRow {
  readonly digest: string
  readonly media_type: string
  readonly size_bytes: number
}

interface ManifestRow extends SummaryRow {
  readonly payload: Uint8Array
}

interface TextsRow {
  readonly artifact_type: string | null
  readonly annotations: string | null
}

/** Without its texts, if they are long. */
interface ReferrerRow extends SummaryRow, TextsRow {
  readonly id: number
  readonly text_bytes: number
}

/** As in the statement `referrersOf`. */
const shortTextBytesMax = 2048

/** A referrer as JSON has about so many bytes beside its texts. */
const referrerBytes = 250

export class SqlManifests implements Manifests {
  readonly #queries: Queryable

  constructor(queries: Queryable) {
    this.#queries = queries
  }

  async find(scope: Scope, reference: Reference): Promise<StoredManifest | undefined> {
    const row =
      'tag' in reference
        ? await this.#queries.lookUp<ManifestRow>(findByTag, [scope.accountId, scope.repository, reference.tag])
        : await this.#queries.lookUp<ManifestRow>(findByDigest, [scope.accountId, scope.repository, reference.digest])
    return row && { ...toSummary(row), bytes: row.payload }
  }

  async describe(scope: Scope, reference: Reference): Promise<ManifestSummary | undefined> {
    const row =
      'tag' in reference
        ? await this.#queries.lookUp<SummaryRow>(describeByTag, [scope.accountId, scope.repository, reference.tag])
        : await this.#queries.lookUp<SummaryRow>(describeByDigest, [
            scope.accountId,
            scope.repository,
            reference.digest,
          ])
    return row && toSummary(row)
  }

  async listReferrers(scope: Scope, query: ReferrerQuery): Promise<ReferrerBatch> {
    const rows = await this.#queries.all<ReferrerRow>(referrersOf, [
      scope.accountId,
      scope.repository,
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
      const texts = row.text_bytes <= shortTextBytesMax ? row : await this.#findTexts(scope, row)
      // The manifest was deleted just now.
      if (texts === undefined) continue
      referrers.push({
        ...toSummary(row),
        artifactType: texts.artifact_type ?? undefined,
        annotationsJson: texts.annotations ?? undefined,
      })
    }
    return { referrers, hasMore: rows.length === query.limit && referrers.length > 0 }
  }

  #findTexts({ accountId }: Scope, { id }: ReferrerRow): Promise<TextsRow | undefined> {
    return this.#queries.first<TextsRow>(findTexts, [accountId, id])
  }

  async lockByDigests(repository: RepositoryRow, digests: readonly string[]): Promise<ReadonlyMap<string, RowId>> {
    const values = [repository.accountId, repository.id, JSON.stringify(digests.toSorted())]
    return toFound(await this.#queries.all<FoundRow>(lockManifests, values))
  }

  async findLocked(repository: RepositoryRow, digest: Digest): Promise<RowId | undefined> {
    const row = await this.#queries.first<{ id: number }>(
      `SELECT m.id FROM manifests m WHERE m.account_id = $1 AND m.repository_id = $2 AND m.digest = $3 {lock m}`,
      [repository.accountId, repository.id, digest],
    )
    return row?.id
  }

  async save(repository: RepositoryRow, manifest: NewManifest): Promise<{ id: RowId; isNew: boolean }> {
    const key = [repository.accountId, repository.id, manifest.digest, manifest.mediaType]
    // Of two that push it at once, one waits for the other and finds its row; unless that was only just being deleted, and
    // is gone when the wait is over.
    for (let tries = 0; tries < saveTriesMax; tries += 1) {
      const added = await this.#queries.returning<{ id: number }>(saveManifest, [
        ...key,
        manifest.sizeBytes,
        manifest.subject ?? null,
        manifest.artifactType ?? null,
        manifest.annotations === undefined ? null : JSON.stringify(manifest.annotations),
        manifest.bytes,
      ])
      if (added[0] !== undefined) return { id: added[0].id, isNew: true }
      const known = await this.#queries.returning<{ id: number }>(renameManifest, key)
      if (known[0] !== undefined) return { id: known[0].id, isNew: false }
    }
    throw new Unavailable('the metadata store', { cause: new Error(`manifest ${manifest.digest} comes and goes`) })
  }

  async saveEntries(repository: RepositoryRow, manifestId: RowId, entries: readonly ManifestEntry[]): Promise<void> {
    if (entries.length === 0) return
    await this.#queries.run(saveEntries, [repository.accountId, repository.id, manifestId, JSON.stringify(entries)])
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
    // Chosen and sorted here: if the statement asks for it, SQLite reads all blobs of the account by an index that has them so.
    return rows.flatMap(({ blob_id: id }) => (id === null ? [] : [id])).toSorted((one, other) => one - other)
  }

  async remove(repository: RepositoryRow, manifestId: RowId): Promise<void> {
    await this.#queries.run('DELETE FROM manifests WHERE account_id = $1 AND id = $2', [
      repository.accountId,
      manifestId,
    ])
  }
}

function toSummary(row: SummaryRow): ManifestSummary {
  return { digest: row.digest as Digest, mediaType: row.media_type, sizeBytes: row.size_bytes }
}
