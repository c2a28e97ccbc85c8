import type { Digest } from '../../../oci/digest.ts'
import type { StorageKey, UnfinishedObject } from '../../../ports/blob-store.ts'
import type { RepositoryRow } from '../../../ports/repositories.ts'
import type { RowId } from '../../../ports/row-id.ts'
import type {
  ListedUpload,
  OpenUploads,
  OwnUpload,
  Upload,
  UploadFilter,
  UploadId,
  UploadOwner,
  UploadState,
  Uploads,
} from '../../../ports/uploads.ts'
import type { Queryable } from '../database.ts'
import { putIntoTrash } from './trash.ts'

interface UploadRow {
  readonly repository_id: number
  readonly storage_key: string | null
  readonly received_bytes: number
  readonly received_digest: string | null
  /** How many bytes `received_digest` covers. A server of an older version continues without updating either. */
  readonly digested_bytes: number | null
  readonly notes: string | null
  /** The bytes themselves, if they are few. */
  readonly content?: Uint8Array | null
  /** Negative until the first claim. */
  readonly turn_until: number
  readonly epoch: number
  readonly done_digest: string | null
}

interface ListedRow {
  readonly id: string
  readonly account: string
  readonly repository: string
  readonly subject: string
  readonly received_bytes: number
  readonly age_ms: number
  readonly idle_ms: number
  readonly is_written: number
}

interface OwnRow {
  readonly id: string
  readonly repository: string
  readonly subject: string
  readonly received_bytes: number
  readonly created_at: number
  readonly touched_at: number
  readonly is_written: number
  readonly is_open: number
}

const columns =
  'repository_id, storage_key, received_bytes, received_digest, digested_bytes, notes, epoch, done_digest, turn_until'

// A session belongs to one repository and one principal; for others it does not exist. It is found by its primary key. The plus
// keeps PostgreSQL from searching by the repository, which would read all sessions of the repository.
const ownedBy = `account_id = $1 AND id = $4 AND subject = $3
  AND +repository_id = (SELECT r.id FROM repositories r WHERE r.account_id = $1 AND r.name = $2)`

const findOwned = `
SELECT ${columns}, CASE WHEN turn_until < 0 THEN content END AS content,
  CASE WHEN turn_until > {now} THEN closing_digest END AS closing
FROM uploads WHERE ${ownedBy}`

// The compare-and-set of a turn: it succeeds only if no writer has the turn, and the new epoch is its fencing token.
const claimOwned = `
UPDATE uploads SET epoch = epoch + 1, turn_until = {now} + $5, touched_at = {now}, closing_digest = $6
WHERE ${ownedBy} AND done_digest IS NULL AND turn_until <= {now} RETURNING ${columns}, content`

const recordUnclaimed = `
UPDATE uploads SET epoch = epoch + 1, received_bytes = $4, received_digest = $5, digested_bytes = $4, content = $6,
  touched_at = {now}
WHERE account_id = $1 AND id = $2 AND epoch = $3 AND turn_until < 0 AND done_digest IS NULL`

const removeOwned = `
DELETE FROM uploads WHERE ${ownedBy} AND done_digest IS NULL RETURNING ${columns}`

// The primary key, once for each account, because it begins with the account.
const removeAny = `
DELETE FROM uploads
WHERE account_id IN (SELECT a.id FROM accounts a) AND id = $1 AND done_digest IS NULL
RETURNING ${columns}`

// Index uploads_open_by_touch, in the order of the result.
const listOpen = `
SELECT u.id, a.name AS account, r.name AS repository, u.subject, u.received_bytes,
  {now} - u.created_at AS age_ms, {now} - u.touched_at AS idle_ms,
  CASE WHEN u.turn_until > {now} THEN 1 ELSE 0 END AS is_written
FROM uploads u JOIN accounts a ON a.id = u.account_id JOIN repositories r ON r.id = u.repository_id
WHERE u.done_digest IS NULL AND ($1 = '' OR a.name = $1) AND ($2 = '' OR r.name = $2)
ORDER BY u.touched_at LIMIT $3`

// The primary key, in its order. Finished sessions are read too, so the limit is one of sessions.
const listOfAccount = `
SELECT u.id, (SELECT r.name FROM repositories r WHERE r.id = u.repository_id) AS repository, u.subject, u.received_bytes,
  u.created_at, u.touched_at, CASE WHEN u.turn_until > {now} THEN 1 ELSE 0 END AS is_written,
  CASE WHEN u.done_digest IS NULL THEN 1 ELSE 0 END AS is_open
FROM uploads u WHERE u.account_id = $1 AND u.id > $2 ORDER BY u.id LIMIT $3`

const measureOpen = `
SELECT count(*) AS looked, count(CASE WHEN s.done_digest IS NULL THEN 1 END) AS uploads,
  CAST(coalesce(sum(CASE WHEN s.done_digest IS NULL THEN s.received_bytes ELSE 0 END), 0) AS bigint) AS bytes
FROM (SELECT u.done_digest, u.received_bytes FROM uploads u WHERE u.account_id = $1 ORDER BY u.id LIMIT $2) AS s`

export class SqlUploads implements Uploads {
  readonly #queries: Queryable

  constructor(queries: Queryable) {
    this.#queries = queries
  }

  async create(
    repository: RepositoryRow,
    subject: string,
    id: UploadId,
    storageKey: StorageKey,
    turnMs: number,
  ): Promise<Upload> {
    await this.#queries.run(
      `INSERT INTO uploads (account_id, repository_id, subject, id, storage_key, turn_until, created_at, touched_at)
       VALUES ($1, $2, $3, $4, $5, CASE WHEN $6 > 0 THEN {now} + $6 ELSE -1 END, {now}, {now})`,
      [repository.accountId, repository.id, subject, id, storageKey, turnMs],
    )
    const object = { sizeBytes: 0, notes: undefined }
    const { accountId, id: repositoryId } = repository
    return {
      id,
      repository: { accountId, id: repositoryId },
      storageKey,
      object,
      receivedDigest: undefined,
      epoch: 0,
      isUnclaimed: turnMs === 0,
    }
  }

  async find(owner: UploadOwner, id: UploadId): Promise<UploadState | undefined> {
    const row = await this.#queries.first<UploadRow & { closing: string | null }>(findOwned, ownerValues(owner, id))
    if (row === undefined) return undefined
    if (row.done_digest !== null) return { done: row.done_digest as Digest }
    return { open: toUpload(owner, id, row), closing: (row.closing ?? undefined) as Digest | undefined }
  }

  async claimTurn(owner: UploadOwner, id: UploadId, turnMs: number, closing?: Digest): Promise<Upload | undefined> {
    const values = [...ownerValues(owner, id), turnMs, closing ?? null]
    const rows = await this.#queries.returning<UploadRow>(claimOwned, values)
    return rows[0] && toUpload(owner, id, rows[0])
  }

  async renewTurn(upload: Upload, turnMs: number): Promise<boolean> {
    const changed = await this.#queries.run(
      `UPDATE uploads SET turn_until = {now} + $4, touched_at = {now}
       WHERE account_id = $1 AND id = $2 AND epoch = $3 AND done_digest IS NULL`,
      [upload.repository.accountId, upload.id, upload.epoch, turnMs],
    )
    return changed > 0
  }

  async releaseTurn(upload: Upload, object: UnfinishedObject, receivedDigest: Digest | undefined): Promise<boolean> {
    const { repository, id, epoch } = upload
    const changed = await this.#queries.run(
      `UPDATE uploads SET received_bytes = $4, notes = $5, received_digest = $6, digested_bytes = $4, content = $7,
         turn_until = 0, touched_at = {now}
       WHERE account_id = $1 AND id = $2 AND epoch = $3 AND done_digest IS NULL`,
      [
        repository.accountId,
        id,
        epoch,
        object.sizeBytes,
        object.notes ?? null,
        receivedDigest ?? null,
        object.inlineBytes ?? null,
      ],
    )
    return changed > 0
  }

  async recordUnclaimed(upload: Upload, object: UnfinishedObject, receivedDigest: Digest): Promise<boolean> {
    const { repository, id, epoch } = upload
    const bytes = [object.sizeBytes, receivedDigest, object.inlineBytes ?? null]
    return (await this.#queries.run(recordUnclaimed, [repository.accountId, id, epoch, ...bytes])) > 0
  }

  async holdsTurn(upload: Upload): Promise<boolean> {
    const row = await this.#queries.first(
      `SELECT 1 AS found FROM uploads u
       WHERE account_id = $1 AND id = $2 AND epoch = $3 AND done_digest IS NULL {for update u}`,
      [upload.repository.accountId, upload.id, upload.epoch],
    )
    return row !== undefined
  }

  async releaseAllTurns(): Promise<void> {
    await this.#queries.run('UPDATE uploads SET turn_until = 0 WHERE turn_until > 0', [])
  }

  async countOpen(repository: RepositoryRow, subject: string): Promise<OpenUploads> {
    const row = await this.#queries.first<{ of_repository: number; of_subject: number }>(
      `SELECT count(*) AS of_repository, count(CASE WHEN subject = $3 THEN 1 END) AS of_subject FROM uploads
       WHERE account_id = $1 AND repository_id = $2 AND done_digest IS NULL AND (epoch > 0 OR turn_until <= {now})`,
      [repository.accountId, repository.id, subject],
    )
    return { ofRepository: row?.of_repository ?? 0, ofSubject: row?.of_subject ?? 0 }
  }

  async commit({ repository, id, epoch, isUnclaimed }: Upload, digest: Digest): Promise<boolean> {
    const changed = await this.#queries.run(
      `UPDATE uploads SET done_digest = $4, storage_key = NULL, notes = NULL, received_digest = NULL, content = NULL,
         turn_until = 0, touched_at = {now}
       WHERE account_id = $1 AND id = $2 AND epoch = $3 AND done_digest IS NULL AND ($5 = 0 OR turn_until < 0)`,
      [repository.accountId, id, epoch, digest, isUnclaimed ? 1 : 0],
    )
    return changed > 0
  }

  async listOpen({ account, repository }: UploadFilter, limit: number): Promise<ListedUpload[]> {
    const rows = await this.#queries.all<ListedRow>(listOpen, [account ?? '', repository ?? '', limit])
    return rows.map((row) => ({
      id: row.id as UploadId,
      account: row.account,
      repository: row.repository,
      subject: row.subject,
      sizeBytes: row.received_bytes,
      ageMs: row.age_ms,
      idleMs: row.idle_ms,
      isWritten: row.is_written === 1,
    }))
  }

  async listOfAccount(accountId: RowId, after: string, limit: number) {
    const rows = await this.#queries.all<OwnRow>(listOfAccount, [accountId, after, limit])
    return {
      uploads: rows.filter((row) => row.is_open === 1).map(toOwnUpload),
      next: rows.length < limit ? undefined : rows.at(-1)?.id,
    }
  }

  async measureOpen(accountId: RowId, limit: number) {
    const row = await this.#queries.first<{ looked: number; uploads: number; bytes: number }>(measureOpen, [
      accountId,
      limit,
    ])
    return { count: row?.uploads ?? 0, bytes: row?.bytes ?? 0, isExact: (row?.looked ?? 0) < limit }
  }

  async remove(owner: UploadOwner, id: UploadId): Promise<boolean> {
    return this.#trashFirst(await this.#queries.returning<UploadRow>(removeOwned, ownerValues(owner, id)))
  }

  async removeAny(id: UploadId): Promise<boolean> {
    return this.#trashFirst(await this.#queries.returning<UploadRow>(removeAny, [id]))
  }

  async #trashFirst([row]: readonly UploadRow[]): Promise<boolean> {
    if (row === undefined) return false
    const mayHaveObject = row.storage_key !== null && row.turn_until >= 0
    if (mayHaveObject) await putIntoTrash(this.#queries, row.storage_key, row.notes)
    return true
  }
}

function toOwnUpload(row: OwnRow): OwnUpload {
  return {
    id: row.id as UploadId,
    repository: row.repository,
    subject: row.subject,
    sizeBytes: row.received_bytes,
    startedAt: row.created_at,
    touchedAt: row.touched_at,
    isWritten: row.is_written === 1,
  }
}

function ownerValues(owner: UploadOwner, id: UploadId): [number, string, string, string] {
  return [owner.accountId, owner.repository, owner.subject, id]
}

function toUpload(owner: UploadOwner, id: UploadId, row: UploadRow): Upload {
  return {
    id,
    repository: { accountId: owner.accountId, id: row.repository_id },
    storageKey: row.storage_key as StorageKey,
    object: {
      sizeBytes: row.received_bytes,
      notes: row.notes ?? undefined,
      ...(row.content ? { inlineBytes: row.content } : {}),
    },
    receivedDigest:
      row.digested_bytes === row.received_bytes ? ((row.received_digest ?? undefined) as Digest) : undefined,
    epoch: row.epoch,
    isUnclaimed: row.turn_until < 0,
  }
}
