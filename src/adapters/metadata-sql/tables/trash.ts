import type { Queryable } from '../database.ts'

/**
 * The bytes of every key in the trash will be removed, so a key that a blob or an upload still names must never get there. Then
 * the statement inserts nothing, and the transaction fails.
 *
 * The key of a blob may be the key of its upload with a suffix (S3), and removing the upload's objects would remove the blob's
 * too. So the whole range of keys that begin with this one is searched: `~` sorts after every character of a key.
 */
const insertUnlessNamed = `
INSERT INTO trash (storage_key, notes, trashed_at) SELECT $1, $2, {now}
WHERE NOT EXISTS (SELECT 1 FROM blobs WHERE storage_key >= $1 AND storage_key < $1 || '~')
  AND NOT EXISTS (SELECT 1 FROM uploads WHERE storage_key = $1)`

export async function putIntoTrash(queries: Queryable, storageKey: string, notes: string | null): Promise<void> {
  const inserted = await queries.run(insertUnlessNamed, [storageKey, notes])
  if (inserted !== 1) throw new Error(`storage key ${storageKey} is still in use`)
}
