import { join } from 'node:path'
import type { StorageKey } from '../../ports/blob-store.ts'

/**
 *   <data>/blobs
 *   ├── 00
 *   │   └── 0193a7c2-...-00   one object, finished or not, under its random key from its first byte on
 *   ├── 01
 *   ├── ..                    256 folders, made and synced at the start, so that no upload has to make one
 *   └── owner                 the name of the registry whose bytes these are
 *
 * No temporary names and no renames: whether an object is finished is known to the metadata store alone, and a file that
 * no row names is garbage. The folder is taken from the key's end, because the begin of a time-ordered id is its clock.
 */
const keyPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

export const fanOut: readonly string[] = Array.from({ length: 256 }, (_, n) => n.toString(16).padStart(2, '0'))

export const ownerFile = 'owner'

export function isStorageKey(name: string): name is StorageKey {
  return keyPattern.test(name)
}

export function folderOf(root: string, key: StorageKey): string {
  // A key is only ever made by us; this keeps a damaged row from naming a path.
  if (!isStorageKey(key)) throw new Error('not a storage key')
  return join(root, key.slice(-2))
}

export function pathOf(root: string, key: StorageKey): string {
  return join(folderOf(root, key), key)
}
