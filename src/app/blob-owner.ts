import type { BlobStore } from '../ports/blob-store.ts'
import type { MetadataStore } from '../ports/metadata-store.ts'

// Each metadata store has a random id. A blob store holds the id of the metadata store whose rows name its objects.

interface StorePair {
  readonly metadata: Pick<MetadataStore, 'marks' | 'transaction'>
  readonly blobs: Pick<BlobStore, 'claim'>
}

/** Gives the metadata store's id. Creates it on the first call. */
export async function nameStore(metadata: StorePair['metadata']): Promise<string> {
  const id = await metadata.marks.find('store-id')
  if (id !== undefined) return id
  return metadata.transaction(async ({ marks }) => {
    await marks.lockExclusively()
    const known = await marks.find('store-id')
    if (known !== undefined) return known
    const created: string = crypto.randomUUID()
    await marks.set('store-id', created)
    return created
  })
}

/**
 * Requires that the blob store belongs to this metadata store. Claims a blob store that is new, or whose owner is
 * `formerOwner`. Two registries on one blob store would take each other's objects for orphans and remove them. A blob store
 * without an owner is refused if this registry has claimed one before: then the disk may not be mounted, or the settings
 * may name the wrong bucket.
 */
export async function claimBlobStore({ metadata, blobs }: StorePair, formerOwner?: string): Promise<void> {
  const id = await nameStore(metadata)
  const mayBeNew = (await metadata.marks.find('has-blobs')) === undefined
  const owner = await blobs.claim(id, formerOwner === undefined ? { mayBeNew } : { mayBeNew, formerOwner })
  if (owner === undefined) {
    throw new Error(
      `the blobs of this registry, ${id}, are in another store: is the disk mounted, and are the settings those of the other servers?`,
    )
  }
  if (owner !== id) throw new Error(`the blob store belongs to another registry, ${owner}; this one is ${id}`)
  if (mayBeNew) await metadata.transaction(({ marks }) => marks.set('has-blobs', id))
}
