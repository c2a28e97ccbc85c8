import type { Digest } from '../../../oci/digest.ts'
import type { RepositoryRow } from '../../../ports/repositories.ts'
import type { RowId } from '../../../ports/row-id.ts'
import type {
  DueManifest,
  Untagged,
  UntaggedBatch,
  UntaggedManifest,
  UntaggedPosition,
} from '../../../ports/untagged.ts'
import type { Queryable } from '../database.ts'

interface CandidateRow {
  readonly manifest_id: number
  readonly since: number
  readonly was_tagged: number
  /** `related`: an index lists it, or its subject exists. */
  readonly state: 'tagged' | 'related' | 'untagged'
}

interface ListedRow extends CandidateRow {
  readonly digest: string
  readonly media_type: string
  readonly size_bytes: number
  readonly artifact_type: string | null
}

interface DueRow extends CandidateRow {
  readonly account_id: number
  readonly repository_id: number
  readonly age: number
  readonly account_state: string
}

// One probe each in tags_of_manifest, manifest_entries_of_child and the key of manifests (digest).
const state = `CASE
  WHEN EXISTS (SELECT 1 FROM tags t WHERE t.account_id = m.account_id AND t.manifest_id = m.id) THEN 'tagged'
  WHEN EXISTS (SELECT 1 FROM manifest_entries e WHERE e.account_id = m.account_id AND e.child_id = m.id)
    OR m.subject_digest IS NOT NULL AND EXISTS (
      SELECT 1 FROM manifests s
      WHERE s.account_id = m.account_id AND s.repository_id = m.repository_id AND s.digest = m.subject_digest)
  THEN 'related' ELSE 'untagged' END`

// Index untagged_manifests_of_repository, in its order.
const listOfRepository = `
SELECT u.manifest_id, u.since, u.was_tagged, ${state} AS state, m.digest, m.media_type, m.size_bytes, m.artifact_type
FROM untagged_manifests u JOIN manifests m ON m.account_id = u.account_id AND m.id = u.manifest_id
WHERE u.account_id = $1 AND u.repository_id = $2 AND (u.since, u.manifest_id) > ($3, $4)
ORDER BY u.since, u.manifest_id LIMIT $5`

// Index untagged_manifests_by_age, in its order.
const listOfAll = `
SELECT u.account_id, u.repository_id, u.manifest_id, u.since, u.was_tagged, {now} - u.since AS age,
  a.state AS account_state, ${state} AS state
FROM untagged_manifests u
JOIN manifests m ON m.account_id = u.account_id AND m.id = u.manifest_id
JOIN accounts a ON a.id = u.account_id
WHERE (u.since, u.manifest_id) > ($1, $2)
ORDER BY u.since, u.manifest_id LIMIT $3`

// `since` has changed if another transaction has added the manifest again. That transaction may have removed the tag, index or
// subject that this one has seen.
const removeCandidate = 'DELETE FROM untagged_manifests WHERE account_id = $1 AND manifest_id = $2 AND since = $3'

export const addUntagged = `
INSERT INTO untagged_manifests (account_id, manifest_id, repository_id, since, was_tagged) VALUES ($1, $2, $3, {now}, $4)
ON CONFLICT (account_id, manifest_id) DO UPDATE SET since = excluded.since, was_tagged = excluded.was_tagged`

const addAgain = 'ON CONFLICT (account_id, manifest_id) DO UPDATE SET since = excluded.since'

// `coalesce`: for IS NOT NULL, SQLite would read all entries of the account from another index.
const addListed = `
INSERT INTO untagged_manifests (account_id, manifest_id, repository_id, since, was_tagged)
SELECT account_id, child_id, repository_id, {now}, 0 FROM manifest_entries
WHERE account_id = $1 AND manifest_id = $2 AND coalesce(child_id, 0) > 0 ${addAgain}`

const addReferrers = `
INSERT INTO untagged_manifests (account_id, manifest_id, repository_id, since, was_tagged)
SELECT account_id, id, repository_id, {now}, 0 FROM manifests
WHERE account_id = $1 AND repository_id = $2 AND subject_digest = $3 ${addAgain}`

const lockManifest = 'SELECT m.digest FROM manifests m WHERE m.account_id = $1 AND m.id = $2 {for update m}'

// After the lock, in a statement of its own, so that it sees what other transactions committed while this one waited.
const checkLocked = `
SELECT 1 AS found FROM untagged_manifests u JOIN manifests m ON m.account_id = u.account_id AND m.id = u.manifest_id
WHERE u.account_id = $1 AND u.manifest_id = $2 AND u.since = $3 AND ${state} = 'untagged'`

export class SqlUntagged implements Untagged {
  readonly #queries: Queryable

  constructor(queries: Queryable) {
    this.#queries = queries
  }

  async list(
    repository: RepositoryRow,
    after: UntaggedPosition | undefined,
    limit: number,
  ): Promise<UntaggedBatch<UntaggedManifest>> {
    const values = [repository.accountId, repository.id, after?.since ?? 0, after?.id ?? 0, limit]
    const rows = await this.#queries.all<ListedRow>(listOfRepository, values)
    const manifests = rows.filter((row) => row.state === 'untagged').map(toManifest)
    return { manifests, next: positionAfter(rows, limit) }
  }

  async add(repository: RepositoryRow, manifestId: RowId): Promise<void> {
    await this.#queries.run(addUntagged, [repository.accountId, manifestId, repository.id, 0])
  }

  async addRelated(repository: RepositoryRow, { id, digest }: { id: RowId; digest: string }): Promise<void> {
    await this.#queries.run(addListed, [repository.accountId, id])
    await this.#queries.run(addReferrers, [repository.accountId, repository.id, digest])
  }

  async check(after: UntaggedPosition | undefined, limit: number): Promise<UntaggedBatch<DueManifest>> {
    const rows = await this.#queries.all<DueRow>(listOfAll, [after?.since ?? 0, after?.id ?? 0, limit])
    for (const row of rows.filter(isSuperfluous)) {
      await this.#queries.run(removeCandidate, [row.account_id, row.manifest_id, row.since])
    }
    const untagged = rows.filter((row) => row.state === 'untagged' && row.account_state === 'enabled')
    return { manifests: untagged.map(toDue), next: positionAfter(rows, limit) }
  }

  async lock({ repository, id, since }: DueManifest): Promise<string | undefined> {
    const row = await this.#queries.first<{ digest: string }>(lockManifest, [repository.accountId, id])
    const found = await this.#queries.first(checkLocked, [repository.accountId, id, since])
    return found && row?.digest
  }
}

/** Whether nothing is lost without the candidate. A related manifest must not lose the information that it had a tag. */
function isSuperfluous(row: CandidateRow): boolean {
  return row.state === 'tagged' || (row.state === 'related' && row.was_tagged === 0)
}

function positionAfter(rows: readonly CandidateRow[], limit: number): UntaggedPosition | undefined {
  const last = rows.length < limit ? undefined : rows.at(-1)
  return last && { since: last.since, id: last.manifest_id }
}

function toManifest(row: ListedRow): UntaggedManifest {
  return {
    id: row.manifest_id,
    digest: row.digest as Digest,
    mediaType: row.media_type,
    sizeBytes: row.size_bytes,
    artifactType: row.artifact_type ?? undefined,
    since: row.since,
    wasTagged: row.was_tagged === 1,
  }
}

function toDue(row: DueRow): DueManifest {
  return {
    repository: { accountId: row.account_id, id: row.repository_id },
    id: row.manifest_id,
    since: row.since,
    wasTagged: row.was_tagged === 1,
    ageMs: row.age,
  }
}
