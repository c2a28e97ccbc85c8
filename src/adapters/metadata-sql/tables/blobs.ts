import { andThen } from '../../../lib/and-then.ts'
import type { ByteCache } from '../../../lib/byte-cache.ts'
import type { Digest } from '../../../oci/digest.ts'
import { Unavailable } from '../../../oci/errors.ts'
import type { RepositoryName } from '../../../oci/names.ts'
import type { Awaitable } from '../../../ports/awaitable.ts'
import type { StorageKey } from '../../../ports/blob-store.ts'
import type { BlobRow, Blobs, LinkedBlob, LockedBlob, NewContent } from '../../../ports/blobs.ts'
import type { RepositoryKey, RepositoryRow } from '../../../ports/repositories.ts'
import type { RowId } from '../../../ports/row-id.ts'
import type { Queryable } from '../database.ts'
import { putIntoTrash } from './trash.ts'
import type { UsageLog } from './usage-log.ts'

interface LinkedBlobRow {
  readonly blob_id: number
  readonly repository_id: number
  readonly size_bytes: number
  readonly storage_key: string
  readonly is_inline: number
  readonly leased_at: number
  readonly damaged_at: number | null
}

interface LockedRow {
  readonly digest: string
  readonly id: number | null
  readonly damaged_at: number | null
}

interface FoundBlobRow {
  readonly id: number
  readonly size_bytes: number
  readonly storage_key: string
  readonly is_inline: number
}

// Look-ups are nested, not joined. Most blobs have few links and most repositories are small, so a planner would join by a part
// of a key, and then read all links of a base layer or the whole content of a large repository.

/** Neither engine reads the bytes for this. */
const isInline = 'CASE WHEN b.content IS NULL THEN 0 ELSE 1 END AS is_inline'

// The keys of repositories (name), blobs (digest) and blob_links. Independent of the time, so that the row can be cached.
const findLinked = `
SELECT b.id AS blob_id, l.repository_id, b.size_bytes, b.storage_key, ${isInline}, l.leased_at, b.damaged_at
FROM blob_links l JOIN blobs b ON b.account_id = l.account_id AND b.id = l.blob_id
WHERE l.account_id = $1
  AND l.repository_id = (SELECT id FROM repositories WHERE account_id = $1 AND name = $2)
  AND l.blob_id = (SELECT id FROM blobs WHERE account_id = $1 AND digest = $3)`

const findContent = 'SELECT b.content FROM blobs b WHERE b.id = $1 AND b.storage_key = $2'

const findLocked = `
SELECT b.id, b.size_bytes, b.storage_key, ${isInline} FROM blobs b
WHERE b.account_id = $1 AND b.digest = $2 {for key share b}`

const insert = `
INSERT INTO blobs (account_id, digest, size_bytes, storage_key, content, owner_id, created_at)
VALUES ($1, $2, $3, $4, $5, $6, {now})
ON CONFLICT (account_id, digest) DO NOTHING RETURNING id`

// Index blob_links_by_blob, in the order of the result.
const listHolders = `
SELECT r.name
FROM blob_links l JOIN repositories r ON r.account_id = l.account_id AND r.id = l.repository_id
WHERE l.account_id = $1
  AND l.blob_id = (SELECT id FROM blobs WHERE account_id = $1 AND digest = $2 AND damaged_at IS NULL)
ORDER BY l.repository_id LIMIT $3`

// The keys of blobs (digest) and blob_links, once for each digest.
const lockLinked = `
SELECT each.value AS digest, (
  SELECT l.blob_id FROM blob_links l WHERE l.account_id = $1 AND l.repository_id = $2 AND l.blob_id = (
    SELECT b.id FROM blobs b WHERE b.account_id = $1 AND b.digest = each.value {for key share b}) {for key share l}) AS id,
  (SELECT b.damaged_at FROM blobs b WHERE b.account_id = $1 AND b.digest = each.value) AS damaged_at
FROM {each text $3}`

// Of two transactions that replace the blob, the second waits here and then finds that it is not damaged any more.
const lockDamaged = `
SELECT b.id, b.storage_key FROM blobs b
WHERE b.account_id = $1 AND b.digest = $2 AND b.damaged_at IS NOT NULL {for update b}`

// The key of blob_links, once for each blob.
const lockLinks = `
SELECT CAST(each.value AS bigint) AS id, (
  SELECT l.blob_id FROM blob_links l WHERE l.account_id = $1 AND l.repository_id = $2
    AND l.blob_id = CAST(each.value AS bigint) {for no key update l}) AS linked_id
FROM {each $3}`

// All of these links exist. An upsert, because it finds each of them by its whole key.
const renewLinks = `
INSERT INTO blob_links (account_id, repository_id, blob_id, leased_at)
SELECT $1, $2, CAST(each.value AS bigint), {now} FROM {each $3} WHERE true
ON CONFLICT (account_id, repository_id, blob_id) DO UPDATE SET leased_at = excluded.leased_at`

const sizeOfLinked = '(SELECT b.size_bytes FROM blobs b WHERE b.id = blob_links.blob_id) AS size_bytes'

// An upsert could not tell whether it has added the link.
const insertLink = `
INSERT INTO blob_links (account_id, repository_id, blob_id, leased_at) VALUES ($1, $2, $3, {now})
ON CONFLICT (account_id, repository_id, blob_id) DO NOTHING RETURNING ${sizeOfLinked}`

const renewLink = `
UPDATE blob_links SET leased_at = {now} WHERE account_id = $1 AND repository_id = $2 AND blob_id = $3`

const removeLink = `
DELETE FROM blob_links WHERE account_id = $1 AND repository_id = $2 AND blob_id = $3 RETURNING ${sizeOfLinked}`

const linkTriesMax = 3

const enqueue = `
INSERT INTO blob_queue (account_id, blob_id, queued_at)
SELECT $1, CAST(each.value AS bigint), {now} FROM {each $2} WHERE true
ON CONFLICT (account_id, blob_id) DO UPDATE SET queued_at = excluded.queued_at`

export class SqlBlobs implements Blobs {
  readonly #queries: Queryable
  readonly #usage: UsageLog
  readonly #inlineBytes: ByteCache | undefined
  /** The blobs that were added in this transaction with their owner. */
  readonly #owned = new Set<RowId>()

  /** `inlineBytes`: bytes of inline blobs by storage key. A key is never used again, so they are never outdated. */
  constructor(queries: Queryable, usage: UsageLog, inlineBytes?: ByteCache) {
    this.#queries = queries
    this.#usage = usage
    this.#inlineBytes = inlineBytes
  }

  find({ accountId, repository }: RepositoryKey, digest: Digest): Awaitable<LinkedBlob | undefined> {
    const row = this.#queries.lookUp<LinkedBlobRow>(findLinked, [accountId, repository, digest])
    return andThen(row, (found) => found && toLinkedBlob(found))
  }

  findInlineBytes(blob: Pick<LinkedBlob, 'blobId' | 'storageKey'>): Awaitable<Uint8Array | undefined> {
    return this.#inlineBytes?.get(blob.storageKey) ?? this.#readInlineBytes(blob)
  }

  async #readInlineBytes({
    blobId,
    storageKey,
  }: Pick<LinkedBlob, 'blobId' | 'storageKey'>): Promise<Uint8Array | undefined> {
    const row = await this.#queries.first<{ content: Uint8Array | null }>(findContent, [blobId, storageKey])
    const bytes = row?.content ?? undefined
    if (bytes !== undefined) this.#inlineBytes?.set(storageKey, bytes)
    return bytes
  }

  async listHolders(accountId: RowId, digest: Digest, candidates: number): Promise<RepositoryName[]> {
    const rows = await this.#queries.all<{ name: string }>(listHolders, [accountId, digest, candidates])
    return rows.map((row) => row.name as RepositoryName)
  }

  async lockByDigests(repository: RepositoryRow, digests: readonly string[]): Promise<ReadonlyMap<string, LockedBlob>> {
    const values = [repository.accountId, repository.id, JSON.stringify(digests.toSorted())]
    const locked = new Map<string, LockedBlob>()
    for (const { digest, id, damaged_at } of await this.#queries.all<LockedRow>(lockLinked, values)) {
      if (id !== null) locked.set(digest, { id, isDamaged: damaged_at !== null })
    }
    return locked
  }

  async markDamaged({ blobId, storageKey }: Pick<LinkedBlob, 'blobId' | 'storageKey'>): Promise<boolean> {
    const changed = await this.#queries.run(
      'UPDATE blobs SET damaged_at = {now} WHERE id = $1 AND storage_key = $2 AND damaged_at IS NULL AND content IS NULL',
      [blobId, storageKey],
    )
    return changed > 0
  }

  async unmarkDamaged({ blobId, storageKey }: Pick<LinkedBlob, 'blobId' | 'storageKey'>): Promise<boolean> {
    const changed = await this.#queries.run(
      'UPDATE blobs SET damaged_at = NULL WHERE id = $1 AND storage_key = $2 AND damaged_at IS NOT NULL',
      [blobId, storageKey],
    )
    return changed > 0
  }

  async findLocked(accountId: RowId, digest: Digest): Promise<BlobRow | undefined> {
    const row = await this.#queries.first<FoundBlobRow>(findLocked, [accountId, digest])
    if (row === undefined) return undefined
    const { id, size_bytes: sizeBytes, storage_key: storageKey } = row
    return { id, sizeBytes, storageKey: storageKey as StorageKey, isInline: row.is_inline === 1 }
  }

  async add(accountId: RowId, digest: Digest, content: NewContent, ownerId?: RowId): Promise<BlobRow | undefined> {
    const { sizeBytes, key, inlineBytes } = content
    const values = [accountId, digest, sizeBytes, key, inlineBytes ?? null, ownerId ?? null]
    const [row] = await this.#queries.returning<{ id: number }>(insert, values)
    if (row === undefined) return undefined
    if (ownerId !== undefined) {
      this.#owned.add(row.id)
      await this.#usage.record({ accountId, id: ownerId }, { ownedBytes: sizeBytes, storedBytes: sizeBytes })
    }
    return toBlobRow(row.id, content)
  }

  async replaceDamaged(accountId: RowId, digest: Digest, content: NewContent): Promise<BlobRow | undefined> {
    const former = await this.#queries.first<{ id: number; storage_key: string }>(lockDamaged, [accountId, digest])
    if (former === undefined) return undefined
    await this.#queries.run(
      `UPDATE blobs SET storage_key = $3, size_bytes = $4, content = $5, damaged_at = NULL
       WHERE account_id = $1 AND id = $2`,
      [accountId, former.id, content.key, content.sizeBytes, content.inlineBytes ?? null],
    )
    // There may still be bytes under the old key: of a wrong size, or on a disk that will be mounted again.
    await putIntoTrash(this.#queries, former.storage_key, null)
    return toBlobRow(former.id, content)
  }

  async link(repository: RepositoryRow, blobId: RowId, digest: Digest): Promise<void> {
    await Promise.all([
      this.#addLink(repository, blobId),
      this.#queries.run(enqueue, [repository.accountId, JSON.stringify([blobId])]),
      this.#queries.run(
        `UPDATE manifest_entries SET blob_id = $4
         WHERE account_id = $1 AND repository_id = $2 AND digest = $3 AND blob_id IS NULL AND child_id IS NULL`,
        [repository.accountId, repository.id, digest, blobId],
      ),
    ])
  }

  /** The collector may remove the link between the two statements. Then they are tried again. */
  async #addLink(repository: RepositoryRow, blobId: RowId): Promise<void> {
    const key = [repository.accountId, repository.id, blobId]
    for (let tries = 0; tries < linkTriesMax; tries += 1) {
      const [added] = await this.#queries.returning<{ size_bytes: number }>(insertLink, key)
      if (added !== undefined) {
        const isOwner = this.#owned.has(blobId)
        return this.#usage.record(repository, { bytes: added.size_bytes, ...(isOwner ? {} : { blobId }) })
      }
      if ((await this.#queries.run(renewLink, key)) > 0) return
    }
    const cause = new Error(`the link of blob ${blobId} is added and removed repeatedly`)
    throw new Unavailable('metadata-store', { cause })
  }

  async renewLeases(repository: RepositoryRow, blobIds: readonly RowId[]): Promise<void> {
    if (blobIds.length === 0) return
    // Sorted, so that two transactions lock rows in the same order and cannot deadlock.
    const sorted = blobIds.toSorted((one, other) => one - other)
    const values = [repository.accountId, repository.id, JSON.stringify(sorted)]
    const links = await this.#queries.all<{ id: number; linked_id: number | null }>(lockLinks, values)
    for (const { id, linked_id: linkedId } of links) if (linkedId === null) await this.#addLink(repository, id)
    await Promise.all([
      this.#queries.run(renewLinks, values),
      this.#queries.run(enqueue, [repository.accountId, JSON.stringify(sorted)]),
    ])
  }

  async isUsed(repository: RepositoryRow, blobId: RowId): Promise<boolean> {
    // A transaction that has locked the link is about to use it. Wait for it, then look with a second statement.
    await this.#queries.run(
      'SELECT 1 AS held FROM blob_links l WHERE account_id = $1 AND repository_id = $2 AND blob_id = $3 {for update l}',
      [repository.accountId, repository.id, blobId],
    )
    const row = await this.#queries.first(
      `SELECT 1 AS found FROM manifest_entries
       WHERE account_id = $1 AND blob_id = $3 AND repository_id = $2 LIMIT 1`,
      [repository.accountId, repository.id, blobId],
    )
    return row !== undefined
  }

  async unlink(repository: RepositoryRow, blobId: RowId): Promise<void> {
    const key = [repository.accountId, repository.id, blobId]
    const removed = await this.#queries.returning<{ size_bytes: number }>(removeLink, key)
    for (const { size_bytes: bytes } of removed) await this.#usage.record(repository, { bytes: -bytes, blobId })
    await this.#queries.run(enqueue, [repository.accountId, JSON.stringify([blobId])])
  }
}

function toBlobRow(id: RowId, { sizeBytes, key, inlineBytes }: NewContent): BlobRow {
  return { id, sizeBytes, storageKey: key, isInline: inlineBytes !== undefined }
}

function toLinkedBlob(row: LinkedBlobRow): LinkedBlob {
  return {
    blobId: row.blob_id,
    repositoryId: row.repository_id,
    sizeBytes: row.size_bytes,
    storageKey: row.storage_key as StorageKey,
    isInline: row.is_inline === 1,
    leasedAt: row.leased_at,
    isDamaged: row.damaged_at !== null,
  }
}
