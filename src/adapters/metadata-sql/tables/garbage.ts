import type { StorageKey } from '../../../ports/blob-store.ts'
import type { BlobCandidate, Garbage, GarbageAges, GarbageForecast, TrashedObject } from '../../../ports/garbage.ts'
import type { Queryable } from '../database.ts'
import * as statements from './garbage-statements.ts'
import { putIntoTrash } from './trash.ts'

interface CandidateRow {
  readonly account_id: number
  readonly blob_id: number
  readonly storage_key: string
  readonly size_bytes: number
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

  async lockNextDue(leaseMs: number): Promise<BlobCandidate | undefined> {
    const row = await this.#queries.first<CandidateRow>(statements.lockNextDue, [leaseMs])
    if (row === undefined) return undefined
    return {
      accountId: row.account_id,
      blobId: row.blob_id,
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
    const rows = await this.#queries.returning<TrashRow>(statements.expireUploads, [
      ages.uploadIdleMs,
      ages.uploadMaxMs,
      ages.uploadDoneMs,
      limit,
    ])
    for (const row of rows) {
      if (row.storage_key === null) continue
      await this.trash({ storageKey: row.storage_key as StorageKey, notes: row.notes ?? undefined })
    }
    return rows.length
  }

  async trash({ storageKey, notes }: TrashedObject): Promise<void> {
    await putIntoTrash(this.#queries, storageKey, notes ?? null)
  }

  async listPurgeable(quarantineMs: number, limit: number): Promise<TrashedObject[]> {
    const rows = await this.#queries.all<TrashRow>(
      'SELECT storage_key, notes FROM trash WHERE trashed_at <= {now} - $1 ORDER BY trashed_at LIMIT $2',
      [quarantineMs, limit],
    )
    return rows.map((row) => ({ storageKey: row.storage_key as StorageKey, notes: row.notes ?? undefined }))
  }

  async forget(key: StorageKey): Promise<void> {
    await this.#queries.run('DELETE FROM trash WHERE storage_key = $1', [key])
  }

  async removeEmptyRepositories(idleMs: number, limit: number): Promise<number> {
    return this.#queries.run(statements.removeEmptyRepositories, [idleMs, limit])
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
