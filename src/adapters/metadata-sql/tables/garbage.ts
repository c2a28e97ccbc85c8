import type { RemovableObject, StorageKey, StrayObject } from '../../../ports/blob-store.ts'
import type { BlobCandidate, Garbage, GarbageAges, GarbageForecast } from '../../../ports/garbage.ts'
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

  async trash({ storageKey, notes }: RemovableObject): Promise<void> {
    await putIntoTrash(this.#queries, storageKey, notes ?? null)
  }

  async trashStrays(strays: readonly StrayObject[]): Promise<number> {
    const [keys, openedFor] = [strays.map((stray) => stray.storageKey), strays.map((stray) => stray.openedFor)]
    const named = await this.#listKeys(statements.findNamed, keys)
    const unfinished = await this.#listKeys(statements.findUnfinished, [...new Set(openedFor)])
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
