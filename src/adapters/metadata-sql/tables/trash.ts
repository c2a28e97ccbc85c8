import type { Queryable } from '../database.ts'

/**
 * Moves a key to the trash. A key that a blob or an upload still names must never get here, because bytes are removed by
 * what stands in the trash: whoever asks for that has a fault, and its transaction ends. A blob's key may be made of an
 * upload's, whose removal would take the blob's bytes along: `~` comes after every letter of a key.
 */
const insertUnlessNamed = `
INSERT INTO trash (storage_key, notes, trashed_at) SELECT $1, $2, {now}
WHERE NOT EXISTS (SELECT 1 FROM blobs WHERE storage_key >= $1 AND storage_key < $1 || '~')
  AND NOT EXISTS (SELECT 1 FROM uploads WHERE storage_key = $1)`

export async function putIntoTrash(queries: Queryable, storageKey: string, notes: string | null): Promise<void> {
  const inserted = await queries.run(insertUnlessNamed, [storageKey, notes])
  if (inserted !== 1) throw new Error(`storage key ${storageKey} is still in use`)
}
