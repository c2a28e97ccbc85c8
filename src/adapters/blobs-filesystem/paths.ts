import { join } from 'node:path'
import type { StorageKey } from '../../ports/blob-store.ts'

/**
 *   <data>/blobs
 *   ├── 00
 *   │   └── 0193a7c2-...-00   one object, complete or not, under its storage key
 *   ├── 01
 *   ├── ..                    256 folders, created and synced at the start, so that no upload has to create one
 *   └── owner                 the id of the registry that the objects belong to
 *
 * An object has its final name from the first byte on: only the metadata store knows whether it is complete, and a file that
 * no row names is an orphan. The folder is the end of the key, because the beginning of a key is its time.
 */
const keyPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

export const fanOut: readonly string[] = Array.from({ length: 256 }, (_, n) => n.toString(16).padStart(2, '0'))

export const ownerFile = 'owner'

export function isStorageKey(name: string): name is StorageKey {
  return keyPattern.test(name)
}

export function folderOf(root: string, key: StorageKey): string {
  // Keys come from Berth itself. This check keeps a damaged row from naming another path.
  if (!isStorageKey(key)) throw new Error('not a storage key')
  return join(root, key.slice(-2))
}

export function pathOf(root: string, key: StorageKey): string {
  return join(folderOf(root, key), key)
}
