import type { Digest } from '../../../oci/digest.ts'
import type { RemovableObject, StorageKey } from '../../../ports/blob-store.ts'
import type { RowId } from '../../../ports/row-id.ts'
import type { Amount, CopiedObject, CopiedObjects, MovableBlob, MovableBlobs } from '../../../ports/store-move.ts'
import type { Database, Queryable } from '../database.ts'
import { putIntoTrash } from '../tables/trash.ts'

interface BlobRow {
  readonly id: number
  readonly account: string
  readonly digest: string
  readonly size_bytes: number
  readonly storage_key: string
}

export class SqlMovableBlobs implements MovableBlobs {
  readonly #queries: Queryable

  constructor(queries: Queryable) {
    this.#queries = queries
  }

  measure(): Promise<Amount> {
    return measure(this.#queries, 'blobs WHERE content IS NULL')
  }

  async list(after: RowId, limit: number): Promise<MovableBlob[]> {
    const rows = await this.#queries.all<BlobRow>(
      `SELECT b.id, a.name AS account, b.digest, b.size_bytes, b.storage_key
       FROM blobs b JOIN accounts a ON a.id = b.account_id WHERE b.id > $1 AND b.content IS NULL ORDER BY b.id LIMIT $2`,
      [after, limit],
    )
    return rows.map(({ id, account, digest, size_bytes, storage_key }) => ({
      id,
      account,
      digest: digest as Digest,
      sizeBytes: size_bytes,
      storageKey: storage_key as StorageKey,
    }))
  }

  async has(key: StorageKey): Promise<boolean> {
    return (await this.#queries.first('SELECT 1 AS found FROM blobs WHERE storage_key = $1', [key])) !== undefined
  }
}

export class SqlCopiedObjects implements CopiedObjects {
  readonly #database: Pick<Database, 'all' | 'first' | 'transaction'>

  constructor(database: Pick<Database, 'all' | 'first' | 'transaction'>) {
    this.#database = database
  }

  measure(): Promise<Amount> {
    return measure(this.#database, 'copied_objects')
  }

  async list(sourceKeys: readonly StorageKey[]): Promise<ReadonlySet<StorageKey>> {
    const rows = await this.#database.all<{ source_key: StorageKey }>(
      'SELECT source_key FROM copied_objects WHERE source_key {in $1}',
      [JSON.stringify(sourceKeys)],
    )
    return new Set(rows.map((row) => row.source_key))
  }

  async add(copied: CopiedObject, leftovers: readonly RemovableObject[]): Promise<void> {
    const { sourceKey, storageKey, digest, sizeBytes } = copied
    await this.#database.transaction(async (queries) => {
      const added = await queries.run(
        `INSERT INTO copied_objects (source_key, storage_key, digest, size_bytes) VALUES ($1, $2, $3, $4)
         ON CONFLICT (source_key) DO NOTHING`,
        [sourceKey, storageKey, digest, sizeBytes],
      )
      if (added === 0) await putIntoTrash(queries, storageKey, null)
      for (const leftover of leftovers) await putIntoTrash(queries, leftover.storageKey, leftover.notes ?? null)
    })
  }

  async discard({ storageKey, notes }: RemovableObject): Promise<void> {
    await this.#database.transaction((queries) => putIntoTrash(queries, storageKey, notes ?? null))
  }
}

async function measure(
  queries: Pick<Queryable, 'first'>,
  rows: 'blobs WHERE content IS NULL' | 'copied_objects',
): Promise<Amount> {
  const row = await queries.first<Amount>(
    `SELECT count(*) AS blobs, CAST(coalesce(sum(size_bytes), 0) AS bigint) AS bytes FROM ${rows}`,
    [],
  )
  return { blobs: row?.blobs ?? 0, bytes: row?.bytes ?? 0 }
}
