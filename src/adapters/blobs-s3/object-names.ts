import type { StorageKey } from '../../ports/blob-store.ts'

/**
 *   <prefix>00/0193a7c2-...-00-5f3a9c1e...    an object: complete, a tail of an upload, or being uploaded
 *           │  │               └ random letters of the writer: no two writers ever use the same name
 *           │  └ the key of the upload
 *           └ the last two letters of that key, which spread the names evenly
 *   <prefix>owner                         holds the id of the registry to which the objects belong
 *
 * A request can be carried out long after it has timed out. Because each writer has names of its own, a late request never changes
 * an object that a row names. The name of the finished object becomes the key of the blob, so nothing is copied or renamed.
 */
const uploadKey = '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}'
const keyPattern = new RegExp(`^${uploadKey}(?:-[0-9a-f]{16})?$`)
const uploadKeyLength = 36

export const ownerObject = 'owner'

export function freshName(key: StorageKey): StorageKey {
  const letters = crypto.getRandomValues(new Uint8Array(8)).toHex()
  return `${uploadKeyOf(key)}-${letters}` as StorageKey
}

export function isUploadKey(key: StorageKey): boolean {
  return key.length === uploadKeyLength
}

/** The key of the upload to which the object belongs. */
export function uploadKeyOf(key: StorageKey): StorageKey {
  return key.slice(0, uploadKeyLength) as StorageKey
}

export function toObjectName(prefix: string, key: StorageKey): string {
  // Keys come from our own rows. A damaged row must not name other objects in the bucket.
  if (!keyPattern.test(key)) throw new Error('the storage key is not valid')
  return `${prefix}${key.slice(uploadKeyLength - 2, uploadKeyLength)}/${key}`
}

/** Undefined for other objects: a bucket may be shared. */
export function parseObjectName(prefix: string, name: string): StorageKey | undefined {
  const key = name.slice(prefix.length + 3) as StorageKey
  return keyPattern.test(key) && toObjectName(prefix, key) === name ? key : undefined
}
