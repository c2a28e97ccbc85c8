import type { OrphanedObject, RemovableObject, StorageKey } from '../../../ports/blob-store.ts'
import type {
  BlobCandidate,
  DueBlob,
  Garbage,
  GarbageAges,
  GarbageForecast,
  LinkBatch,
  PeriodicWork,
  RepositoryBatch,
} from '../../../ports/garbage.ts'
import type { RepositoryRow } from '../../../ports/repositories.ts'
import type { RowId } from '../../../ports/row-id.ts'
import type { Queryable } from '../database.ts'
import * as statements from './garbage-statements.ts'
import { putIntoTrash } from './trash.ts'
import type { UsageLog } from './usage-log.ts'

interface CandidateRow {
  readonly account_id: number
  readonly blob_id: number
  readonly queued_at: number
  readonly storage_key: string
  readonly size_bytes: number
  readonly state: string
  readonly links: number
}

interface LinkRow {
  readonly repository_id: number
  readonly is_unused: number
}

interface RemovedLink {
  readonly repository_id: number
}

interface RemovedBlob {
  readonly is_object: number
  readonly size_bytes: number
  readonly owner_id: number | null
}

interface RepositoryRowOfBatch {
  readonly account_id: number
  readonly id: number
  readonly may_be_empty: number
}

interface ExpiredRow {
  readonly account_id: number
  readonly id: string
  readonly storage_key: string | null
  readonly notes: string | null
  readonly turn_until: number
}

interface TrashRow {
  readonly storage_key: string
  readonly notes: string | null
}

export class SqlGarbage implements Garbage {
  readonly #queries: Queryable
  readonly #usage: UsageLog

  constructor(queries: Queryable, usage: UsageLog) {
    this.#queries = queries
    this.#usage = usage
  }

  async lockNextDue(leaseMs: number, queuedFrom: number, linksMax: number): Promise<DueBlob | undefined> {
    const row = await this.#queries.first<CandidateRow>(statements.lockNextDue, [leaseMs, queuedFrom, linksMax])
    if (row === undefined) return undefined
    return {
      accountId: row.account_id,
      blobId: row.blob_id,
      queuedAt: row.queued_at,
      storageKey: row.storage_key as StorageKey,
      sizeBytes: row.size_bytes,
      isDisabled: row.state === 'disabled',
      hasMoreLinks: row.links > linksMax,
    }
  }

  async lockDue({ accountId, blobId, queuedAt }: DueBlob): Promise<boolean> {
    return (await this.#queries.first(statements.lockDue, [accountId, blobId, queuedAt])) !== undefined
  }

  async requeue({ accountId, blobId, queuedAt }: DueBlob): Promise<number | undefined> {
    const values = [accountId, blobId, queuedAt]
    const [row] = await this.#queries.returning<{ queued_at: number }>(statements.requeue, values)
    return row?.queued_at
  }

  async isInUse(candidate: BlobCandidate, leaseMs: number): Promise<boolean> {
    const row = await this.#queries.first(statements.findUse, [candidate.accountId, candidate.blobId, leaseMs])
    return row !== undefined
  }

  async removeUnusedLinks(
    { accountId, blobId, sizeBytes }: BlobCandidate,
    leaseMs: number,
    after: RowId,
    limit: number,
  ): Promise<LinkBatch> {
    const blob = [accountId, blobId, leaseMs]
    const links = await this.#queries.all<LinkRow>(statements.listLinks, [...blob, after, limit])
    const unused = links.filter((link) => link.is_unused === 1)
    const dropped = await this.#drop(blob, unused)
    for (const id of dropped) await this.#usage.record({ accountId, id }, { bytes: -sizeBytes, blobId })
    return {
      next: links.length < limit ? undefined : links.at(-1)?.repository_id,
      hasSkipped: dropped.length < unused.length,
    }
  }

  async #drop(blob: readonly number[], unused: readonly LinkRow[]): Promise<RowId[]> {
    if (unused.length === 0) return []
    const locked = await this.#queries.all<LinkRow>(statements.lockUnusedLinks, [...blob, ...toRange(unused)])
    if (locked.length === 0) return []
    const values = [...blob, ...toRange(locked)]
    const removed = await this.#queries.returning<RemovedLink>(statements.removeUnusedLinks, values)
    return removed.map((link) => link.repository_id)
  }

  async keep({ accountId, blobId }: BlobCandidate): Promise<void> {
    const dequeued = await this.#queries.run(statements.dequeueUsed, [accountId, blobId])
    if (dequeued === 0) await this.#queries.run(statements.requeueKept, [accountId, blobId])
  }

  async moveToTrash(candidate: BlobCandidate): Promise<void> {
    const { accountId, blobId, storageKey } = candidate
    const links = await this.#queries.returning<RemovedLink>(statements.removeLinks, [accountId, blobId])
    const [removed] = await this.#queries.returning<RemovedBlob>(statements.removeBlob, [accountId, blobId])
    if (removed !== undefined) await this.#recordRemoval(accountId, removed, links)
    if (removed?.is_object !== 0) await this.trash({ storageKey, notes: undefined })
  }

  async #recordRemoval(accountId: RowId, blob: RemovedBlob, links: readonly RemovedLink[]): Promise<void> {
    const bytes = -blob.size_bytes
    for (const { repository_id: id } of links) await this.#usage.record({ accountId, id }, { bytes })
    // Null: the blob is not in the sums yet.
    if (blob.owner_id === null) return
    const ownedBytes = blob.owner_id === 0 ? 0 : bytes
    await this.#usage.record({ accountId, id: blob.owner_id }, { ownedBytes, storedBytes: bytes })
  }

  async expireUploads(ages: GarbageAges, limit: number): Promise<number> {
    const kinds = [
      [statements.lockIdleUploads, ages.uploadIdleMs],
      [statements.lockOldUploads, ages.uploadMaxMs],
      [statements.lockDoneUploads, ages.uploadDoneMs],
    ] as const
    let expired = 0
    for (const [statement, ageMs] of kinds) {
      const rows = await this.#queries.all<ExpiredRow>(statement, [ageMs, limit - expired])
      for (const row of rows) await this.#expire(row)
      expired += rows.length
    }
    return expired
  }

  async #expire({ account_id: accountId, id, storage_key: key, notes, turn_until }: ExpiredRow): Promise<void> {
    await this.#queries.run(statements.removeUpload, [accountId, id])
    // Below 0: no request has claimed the session, so there is no object.
    if (key !== null && turn_until >= 0) await this.trash({ storageKey: key as StorageKey, notes: notes ?? undefined })
  }

  async trash({ storageKey, notes }: RemovableObject): Promise<void> {
    await putIntoTrash(this.#queries, storageKey, notes ?? null)
  }

  async trashOrphans(orphans: readonly OrphanedObject[]): Promise<number> {
    const [keys, openedFor] = [orphans.map((orphan) => orphan.storageKey), orphans.map((orphan) => orphan.openedFor)]
    // In this order: if an upload becomes a blob between the two statements, the first one has found it. In the other order,
    // neither would find it.
    const unfinished = await this.#listKeys(statements.findUnfinished, [...new Set(openedFor)])
    const named = await this.#listKeys(statements.findNamed, keys)
    const unnamed = orphans.filter((orphan) => !named.has(orphan.storageKey) && !unfinished.has(orphan.openedFor))
    for (const orphan of unnamed) await this.trash(orphan)
    return unnamed.length
  }

  async #listKeys(statement: string, keys: readonly StorageKey[]): Promise<ReadonlySet<string>> {
    const rows = await this.#queries.all<{ storage_key: string }>(statement, [JSON.stringify(keys)])
    return new Set(rows.map((row) => row.storage_key))
  }

  async claimTrashed(quarantineMs: number, holdMs: number, limit: number): Promise<RemovableObject[]> {
    const values = [quarantineMs, holdMs, limit]
    const rows = await this.#queries.returning<TrashRow & { trashed_at: number }>(statements.claimTrashed, values)
    rows.sort((one, other) => one.trashed_at - other.trashed_at)
    return rows.map((row) => ({ storageKey: row.storage_key as StorageKey, notes: row.notes ?? undefined }))
  }

  async removeTrashed(key: StorageKey): Promise<void> {
    await this.#queries.run('DELETE FROM trash WHERE storage_key = $1', [key])
  }

  async removeEmptyRepositories(idleMs: number, after: RepositoryRow | undefined): Promise<RepositoryBatch> {
    const values = [idleMs, after?.accountId ?? 0, after?.id ?? 0]
    const batch = await this.#queries.all<RepositoryRowOfBatch>(statements.listNextRepositories, values)
    const last = batch.at(-1)
    return {
      removed: await this.#removeEmpty(batch.filter((row) => row.may_be_empty === 1)),
      next:
        last && batch.length === statements.repositoriesAtOnce
          ? { accountId: last.account_id, id: last.id }
          : undefined,
    }
  }

  async #removeEmpty(candidates: readonly { readonly id: number }[]): Promise<number> {
    if (candidates.length === 0) return 0
    const empty = await this.#queries.all<{ id: number }>(statements.lockEmptyRepositories, [toTexts(candidates)])
    return empty.length === 0 ? 0 : this.#queries.run(statements.removeEmptyRepositories, [toTexts(empty)])
  }

  async claimWork(work: PeriodicWork, everyMs: number): Promise<boolean> {
    return (await this.#queries.run(statements.claimWork, [work, everyMs])) > 0
  }

  async forecast(ages: GarbageAges): Promise<GarbageForecast> {
    const blobs = await this.#queries.first<{ blobs: number; bytes: number }>(statements.forecastBlobs, [ages.leaseMs])
    const uploads = await this.#queries.first<{ uploads: number }>(statements.forecastUploads, [
      ages.uploadIdleMs,
      ages.uploadMaxMs,
    ])
    const trash = await this.#queries.first<{ trashed: number }>(
      'SELECT count(*) AS trashed FROM trash WHERE trashed_at <= {now} - $1',
      [ages.quarantineMs],
    )
    return {
      blobs: blobs?.blobs ?? 0,
      bytes: blobs?.bytes ?? 0,
      uploads: uploads?.uploads ?? 0,
      trashed: trash?.trashed ?? 0,
    }
  }
}

function toTexts(rows: readonly { readonly id: number }[]): string {
  return JSON.stringify(rows.map(({ id }) => String(id)))
}

/** The first id, the last id, and all of them. The links are sorted. */
function toRange(links: readonly Pick<LinkRow, 'repository_id'>[]): [number, number, string] {
  const ids = links.map((link) => link.repository_id)
  return [ids[0] ?? 0, ids.at(-1) ?? 0, JSON.stringify(ids.map(String))]
}
