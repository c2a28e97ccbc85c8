import type { RemovableObject, StorageKey, StrayObject } from '../../../ports/blob-store.ts'
import type { BlobCandidate, DueBlob, Garbage, GarbageAges, GarbageForecast } from '../../../ports/garbage.ts'
import type { Queryable } from '../database.ts'
import * as statements from './garbage-statements.ts'
import { putIntoTrash } from './trash.ts'

interface CandidateRow {
  readonly account_id: number
  readonly blob_id: number
  readonly queued_at: number
  readonly storage_key: string
  readonly size_bytes: number
}

interface ExpiredRow {
  readonly account_id: number
  readonly id: string
  readonly storage_key: string | null
  readonly notes: string | null
}

interface TrashRow {
  readonly storage_key: string
  readonly notes: string | null
}

export class SqlGarbage implements Garbage {
  readonly #queries: Queryable

  constructor(queries: Queryable) {
    this.#queries = queries
  }

  async lockNextDue(leaseMs: number, queuedFrom: number): Promise<DueBlob | undefined> {
    const row = await this.#queries.first<CandidateRow>(statements.lockNextDue, [leaseMs, queuedFrom])
    if (row === undefined) return undefined
    return {
      accountId: row.account_id,
      blobId: row.blob_id,
      queuedAt: row.queued_at,
      storageKey: row.storage_key as StorageKey,
      sizeBytes: row.size_bytes,
    }
  }

  async isLive(candidate: BlobCandidate, leaseMs: number): Promise<boolean> {
    const row = await this.#queries.first(statements.findUse, [candidate.accountId, candidate.blobId, leaseMs])
    return row !== undefined
  }

  async keep({ accountId, blobId }: BlobCandidate, leaseMs: number): Promise<void> {
    await this.#queries.run(statements.dropUnusedLinks, [accountId, blobId, leaseMs])
    const dequeued = await this.#queries.run(statements.dequeueUsed, [accountId, blobId])
    if (dequeued === 0) await this.#queries.run(statements.requeue, [accountId, blobId])
  }

  async bury(candidate: BlobCandidate): Promise<void> {
    const { accountId, blobId, storageKey } = candidate
    await this.#queries.run('DELETE FROM blob_links WHERE account_id = $1 AND blob_id = $2', [accountId, blobId])
    await this.#queries.run('DELETE FROM blobs WHERE account_id = $1 AND id = $2', [accountId, blobId])
    await this.trash({ storageKey, notes: undefined })
  }

  async expireUploads(ages: GarbageAges, limit: number): Promise<number> {
    const looks = [
      [statements.lockIdleUploads, ages.uploadIdleMs],
      [statements.lockOldUploads, ages.uploadMaxMs],
      [statements.lockDoneUploads, ages.uploadDoneMs],
    ] as const
    let expired = 0
    for (const [statement, ageMs] of looks) {
      const rows = await this.#queries.all<ExpiredRow>(statement, [ageMs, limit - expired])
      for (const row of rows) await this.#expire(row)
      expired += rows.length
    }
    return expired
  }

  async #expire({ account_id: accountId, id, storage_key: key, notes }: ExpiredRow): Promise<void> {
    await this.#queries.run(statements.removeUpload, [accountId, id])
    if (key !== null) await this.trash({ storageKey: key as StorageKey, notes: notes ?? undefined })
  }

  async trash({ storageKey, notes }: RemovableObject): Promise<void> {
    await putIntoTrash(this.#queries, storageKey, notes ?? null)
  }

  async trashStrays(strays: readonly StrayObject[]): Promise<number> {
    const [keys, openedFor] = [strays.map((stray) => stray.storageKey), strays.map((stray) => stray.openedFor)]
    // In this order: what was an upload at the first look is a blob at the second.
    const unfinished = await this.#listKeys(statements.findUnfinished, [...new Set(openedFor)])
    const named = await this.#listKeys(statements.findNamed, keys)
    const unnamed = strays.filter((stray) => !named.has(stray.storageKey) && !unfinished.has(stray.openedFor))
    for (const stray of unnamed) await this.trash(stray)
    return unnamed.length
  }

  async #listKeys(statement: string, keys: readonly StorageKey[]): Promise<ReadonlySet<string>> {
    const rows = await this.#queries.all<{ storage_key: string }>(statement, [JSON.stringify(keys)])
    return new Set(rows.map((row) => row.storage_key))
  }

  async takePurgeable(quarantineMs: number, holdMs: number, limit: number): Promise<RemovableObject[]> {
    const values = [quarantineMs, holdMs, limit]
    const rows = await this.#queries.returning<TrashRow & { trashed_at: number }>(statements.takePurgeable, values)
    rows.sort((one, other) => one.trashed_at - other.trashed_at)
    return rows.map((row) => ({ storageKey: row.storage_key as StorageKey, notes: row.notes ?? undefined }))
  }

  async forget(key: StorageKey): Promise<void> {
    await this.#queries.run('DELETE FROM trash WHERE storage_key = $1', [key])
  }

  async removeEmptyRepositories(idleMs: number, limit: number): Promise<number> {
    const empty = await this.#queries.all<{ id: number }>(statements.lockEmptyRepositories, [idleMs, limit])
    if (empty.length === 0) return 0
    return this.#queries.run(statements.removeEmptyRepositories, [JSON.stringify(empty.map(({ id }) => String(id)))])
  }

  async takeTurn(work: string, everyMs: number): Promise<boolean> {
    return (await this.#queries.run(statements.takeTurn, [work, everyMs])) > 0
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
