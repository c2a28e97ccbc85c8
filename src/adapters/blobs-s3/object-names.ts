import type { StorageKey } from '../../ports/blob-store.ts'

/**
 *   <prefix>00/0193a7c2-...-00-5f3a9c1e...    an object under its final name, or a piece on the way to one
 *           │  │               └ the writer's own letters: no two writers ever write to one name
 *           │  └ the key that the upload was given
 *           └ the last two letters of that key, so that names spread evenly, whatever the time
 *   <prefix>owner                         the name of the registry whose objects these are
 *
 * A request to a store can be carried out long after we gave it up. Because a name belongs to one writer, what comes late
 * can only ever hit what nobody names. Nothing is copied or renamed: the name with which a writer ends is the blob's key.
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

/** The key of the upload whose writers may have made the object. */
export function uploadKeyOf(key: StorageKey): StorageKey {
  return key.slice(0, uploadKeyLength) as StorageKey
}

export function toObjectName(prefix: string, key: StorageKey): string {
  // A key is only ever made by us; this keeps a damaged row from naming anything else in the bucket.
  if (!keyPattern.test(key)) throw new Error('not a storage key')
  return `${prefix}${key.slice(uploadKeyLength - 2, uploadKeyLength)}/${key}`
}

/** Undefined for what is none of ours: a bucket may be shared. */
export function parseObjectName(prefix: string, name: string): StorageKey | undefined {
  const key = name.slice(prefix.length + 3) as StorageKey
  return keyPattern.test(key) && toObjectName(prefix, key) === name ? key : undefined
}
