import type { Digest } from '../../../oci/digest.ts'
import type { Tag } from '../../../oci/names.ts'
import type { Actor } from '../../../ports/actor.ts'
import type { RepositoryKey, RepositoryRow } from '../../../ports/repositories.ts'
import type { RowId } from '../../../ports/row-id.ts'
import type { TagChange, TagState, Tags } from '../../../ports/tags.ts'
import type { Queryable } from '../database.ts'
import { addTagMove, addTagRemovals } from './events.ts'
import { addUntagged } from './untagged.ts'
import type { UsageLog } from './usage-log.ts'

/** More rows than any table has. */
const noLimit = Number.MAX_SAFE_INTEGER

// An upsert can return only stored values, so the tag keeps its previous manifest.
const pointTag = `
INSERT INTO tags (account_id, repository_id, name, manifest_id, updated_at, updated_by) VALUES ($1, $2, $3, $4, {now}, $5)
ON CONFLICT (account_id, repository_id, name) DO UPDATE
SET manifest_id = excluded.manifest_id, previous_manifest_id = tags.manifest_id, version = tags.version + 1,
  updated_at = excluded.updated_at, updated_by = excluded.updated_by
RETURNING previous_manifest_id`

// While the transaction holds the row of the tag, no other one can remove the previous manifest.
const recordMove = `
INSERT INTO tag_history (account_id, repository_id, tag, from_digest, to_digest, moved_at, moved_by, cause)
VALUES ($1, $2, $3, (SELECT digest FROM manifests WHERE account_id = $1 AND id = $4),
  (SELECT digest FROM manifests WHERE account_id = $1 AND id = $5), {now}, $6, $7)`

const createTag = `
INSERT INTO tags (account_id, repository_id, name, manifest_id, updated_at, updated_by) VALUES ($1, $2, $3, $4, {now}, $5)
ON CONFLICT (account_id, repository_id, name) DO NOTHING`

const recordRemovals = `
INSERT INTO tag_history (account_id, repository_id, tag, from_digest, moved_at, moved_by, cause)
SELECT $1, $2, each.value, (SELECT digest FROM manifests WHERE account_id = $1 AND id = $4), {now}, $5, $6
FROM {each text $3}`

// The key of tags, in its order. Then whole keys of manifests (id, digest) and manifest_pulls for each tag. A tag that cosign or
// the referrers of the distribution-spec define begins with a digest, whose colon is a hyphen.
const listStates = `
SELECT t.name, t.manifest_id, t.version, t.updated_at,
  (SELECT m.digest FROM manifests m WHERE m.account_id = t.account_id AND m.id = t.manifest_id) AS digest,
  (SELECT p.pulled_at FROM manifest_pulls p WHERE p.account_id = t.account_id AND p.manifest_id = t.manifest_id) AS pulled_at,
  CASE WHEN t.name LIKE 'sha256-%' THEN (
    SELECT count(*) FROM manifests s WHERE s.account_id = t.account_id AND s.repository_id = t.repository_id
      AND s.digest = 'sha256:' || substr(t.name, 8, 64)) END AS subjects
FROM tags t WHERE t.account_id = $1 AND t.repository_id = $2 AND t.name > $3 ORDER BY t.name LIMIT $4`

const companionPattern = /^sha256-[0-9a-f]{64}(?:$|[.])/

const removeUnchanged = `
DELETE FROM tags WHERE account_id = $1 AND repository_id = $2 AND name = $3
  AND manifest_id = $4 AND version = $5 AND updated_at = $6
RETURNING name, repository_id, manifest_id`

interface StateRow {
  readonly name: string
  readonly manifest_id: number
  readonly version: number
  readonly updated_at: number
  readonly digest: string
  readonly pulled_at: number | null
  readonly subjects: number | null
}

interface RemovedRow {
  readonly name: string
  readonly repository_id: number
  readonly manifest_id: number
}

export class SqlTags implements Tags {
  readonly #queries: Queryable
  readonly #usage: UsageLog

  constructor(queries: Queryable, usage: UsageLog) {
    this.#queries = queries
    this.#usage = usage
  }

  async list(repository: RepositoryRow, after: string | undefined, limit: number | undefined): Promise<Tag[]> {
    const rows = await this.#queries.all<{ name: string }>(
      'SELECT name FROM tags WHERE account_id = $1 AND repository_id = $2 AND name > $3 ORDER BY name LIMIT $4',
      [repository.accountId, repository.id, after ?? '', limit ?? noLimit],
    )
    return rows.map((row) => row.name as Tag)
  }

  async point(repository: RepositoryRow, tag: Tag, manifestId: RowId, change: TagChange): Promise<RowId | undefined> {
    const { accountId, id: repositoryId } = repository
    const values = [accountId, repositoryId, tag, manifestId, change.actor.subject]
    const [row] = await this.#queries.returning<{ previous_manifest_id: number | null }>(pointTag, values)
    const previous = row?.previous_manifest_id ?? null
    if (previous === manifestId) return previous
    if (previous === null) await this.#usage.record(repository, { tags: 1 })
    const { actor, cause } = change
    const type = previous === null ? 'tag.created' : 'tag.moved'
    if (previous !== null) await this.#queries.run(addUntagged, [accountId, previous, repositoryId, 1])
    await this.#queries.run(recordMove, [accountId, repositoryId, tag, previous, manifestId, actor.subject, cause])
    const event = [accountId, type, repositoryId, tag, manifestId, previous, ...valuesOf(actor), cause]
    await this.#queries.run(addTagMove, event)
    return previous ?? undefined
  }

  async create(repository: RepositoryRow, tag: Tag, manifestId: RowId, { actor, cause }: TagChange): Promise<boolean> {
    const { accountId, id: repositoryId } = repository
    const created = await this.#queries.run(createTag, [accountId, repositoryId, tag, manifestId, actor.subject])
    if (created === 0) return false
    await this.#usage.record(repository, { tags: 1 })
    await this.#queries.run(recordMove, [accountId, repositoryId, tag, null, manifestId, actor.subject, cause])
    const event = [accountId, 'tag.created', repositoryId, tag, manifestId, null, ...valuesOf(actor), cause]
    await this.#queries.run(addTagMove, event)
    return true
  }

  async remove({ accountId, repository }: RepositoryKey, tag: Tag, change: TagChange): Promise<boolean> {
    const removed = await this.#queries.returning<RemovedRow>(
      `DELETE FROM tags WHERE account_id = $1 AND name = $3
       AND repository_id = (SELECT id FROM repositories WHERE account_id = $1 AND name = $2)
       RETURNING name, repository_id, manifest_id`,
      [accountId, repository, tag],
    )
    await this.#recordRemoval(accountId, removed, change)
    for (const row of removed) {
      await this.#queries.run(addUntagged, [accountId, row.manifest_id, row.repository_id, 1])
    }
    return removed.length > 0
  }

  async listStates(repository: RepositoryRow, after: string | undefined, limit: number): Promise<TagState[]> {
    const values = [repository.accountId, repository.id, after ?? '', limit]
    return (await this.#queries.all<StateRow>(listStates, values)).map(toState)
  }

  async removeUnchanged(repository: RepositoryRow, state: TagState, change: TagChange): Promise<boolean> {
    const { tag, manifestId, version, pushedAt } = state
    const values = [repository.accountId, repository.id, tag, manifestId, version, pushedAt]
    const removed = await this.#queries.returning<RemovedRow>(removeUnchanged, values)
    if (removed.length === 0) return false
    await this.#recordRemoval(repository.accountId, removed, change)
    await this.#queries.run(addUntagged, [repository.accountId, manifestId, repository.id, 1])
    return true
  }

  async removeAllOf(repository: RepositoryRow, manifestId: RowId, change: TagChange): Promise<Tag[]> {
    const removed = await this.#queries.returning<RemovedRow>(
      'DELETE FROM tags WHERE account_id = $1 AND manifest_id = $2 RETURNING name, repository_id, manifest_id',
      [repository.accountId, manifestId],
    )
    await this.#recordRemoval(repository.accountId, removed, change)
    return removed.map(({ name }) => name as Tag).toSorted()
  }

  /** All removed tags had the same manifest. */
  async #recordRemoval(accountId: RowId, removed: readonly RemovedRow[], { actor, cause }: TagChange): Promise<void> {
    const [first] = removed
    if (first === undefined) return
    await this.#usage.record({ accountId, id: first.repository_id }, { tags: -removed.length })
    const names = JSON.stringify(removed.map(({ name }) => name))
    const values = [accountId, first.repository_id, names, first.manifest_id, actor.subject, cause]
    await this.#queries.run(recordRemovals, values)
    const keys = [accountId, first.repository_id, names, first.manifest_id]
    await this.#queries.run(addTagRemovals, [...keys, ...valuesOf(actor), cause])
  }
}

function toState(row: StateRow): TagState {
  return {
    tag: row.name as Tag,
    digest: row.digest as Digest,
    manifestId: row.manifest_id,
    pushedAt: row.updated_at,
    pulledAt: row.pulled_at ?? undefined,
    hasSubject: companionPattern.test(row.name) ? row.subjects !== 0 : undefined,
    version: row.version,
  }
}

function valuesOf({ subject, fingerprint, address }: Actor): (string | null)[] {
  return [subject, fingerprint ?? null, address ?? null]
}
