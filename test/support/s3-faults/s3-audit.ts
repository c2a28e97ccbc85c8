// Looks at a bucket and at the rows that name its objects from outside, and tells everything that must not be.
import { Database } from 'bun:sqlite'
import { join } from 'node:path'
import { parseNotes } from '../../../src/adapters/blobs-s3/upload-state.ts'
import { algorithmOf, type Digest } from '../../../src/oci/digest.ts'
import type { BlobStore, OrphanedObject, StorageKey } from '../../../src/ports/blob-store.ts'
import { digestOf } from '../basics/generated-bytes.ts'
import type { S3StubRequest } from '../s3/s3-stub.ts'
import { readAll } from '../stores/stored-objects.ts'

interface Rows {
  readonly blobs: readonly { readonly digest: Digest; readonly size_bytes: number; readonly storage_key: StorageKey }[]
  readonly uploads: readonly { readonly storage_key: StorageKey; readonly notes: string | null }[]
  readonly trash: readonly { readonly storage_key: StorageKey; readonly notes: string | null }[]
}

function readRows(dataDir: string): Rows {
  using database = new Database(join(dataDir, 'metadata.sqlite'), { readwrite: true })
  const all = <T>(sql: string) => database.query<T, []>(sql).all()
  return {
    blobs: all('SELECT digest, size_bytes, storage_key FROM blobs WHERE content IS NULL'),
    uploads: all('SELECT storage_key, notes FROM uploads WHERE storage_key IS NOT NULL'),
    trash: all('SELECT storage_key, notes FROM trash'),
  }
}

/** All that is there: objects, and multipart uploads that have begun and not ended. */
export async function listThere(store: Pick<BlobStore, 'listOlderThan'>): Promise<OrphanedObject[]> {
  const there: OrphanedObject[] = []
  for await (const page of store.listOlderThan(0)) there.push(...page)
  return there
}

/** Lists the rows whose objects are missing or wrong in the bucket. Empty if nothing acknowledged is lost. */
export async function auditPromises(dataDir: string, store: BlobStore): Promise<string[]> {
  const { blobs, uploads, trash } = readRows(dataDir)
  const there = new Set((await listThere(store)).map((object) => object.storageKey))
  const faults: string[] = []
  for (const { digest, size_bytes, storage_key } of blobs) {
    const bytes = await readAll(await store.open(storage_key, size_bytes))
    if (bytes === undefined) faults.push(`the object of ${digest} is missing, or of another size`)
    else if (digestOf(bytes, algorithmOf(digest)) !== digest) faults.push(`the object of ${digest} holds other bytes`)
    for (const one of trash) {
      if (one.storage_key === storage_key) faults.push(`${storage_key} is a blob and in the trash`)
    }
  }
  for (const { storage_key, notes } of uploads) {
    const { multipart, tails } = parseNotes(notes ?? undefined)
    for (const key of [multipart?.key, ...tails.map((tail) => tail.key)]) {
      if (key !== undefined && !there.has(key))
        faults.push(`the upload ${storage_key} needs ${key}, which is not there`)
    }
  }
  return faults
}

/** The same, and whatever is in the bucket though no row leads to it. */
export async function auditObjects(dataDir: string, store: BlobStore): Promise<string[]> {
  const { blobs, uploads, trash } = readRows(dataDir)
  const named = new Set([...blobs, ...trash].map((row) => row.storage_key))
  const open = new Set([...uploads, ...trash].map((row) => row.storage_key))
  const strays = (await listThere(store)).filter(
    ({ storageKey, openedFor, notes }) => !open.has(openedFor) && !(named.has(storageKey) && notes === undefined),
  )
  const faults = strays.map(({ storageKey, notes }) =>
    notes === undefined ? `no row names ${storageKey}` : `no row names the multipart upload of ${storageKey}`,
  )
  return [...(await auditPromises(dataDir, store)), ...faults]
}

/** Names that more than one request has written to, and requests to copy: neither must ever be. */
export function auditWrites(requests: readonly S3StubRequest[]): string[] {
  const writes = requests.filter(
    ({ operation, status }) =>
      status === 200 &&
      (operation === 'PutObject' || operation === 'CompleteMultipartUpload' || operation === 'CreateMultipartUpload'),
  )
  const makers = Map.groupBy(writes, ({ target }) => target.split('?')[0] ?? '')
  const twice = [...makers].filter(([, its]) => {
    const kinds = its.map(({ operation }) => operation).toSorted()
    return its.length > 1 && kinds.join() !== 'CompleteMultipartUpload,CreateMultipartUpload'
  })
  const copies = requests.filter(({ headers }) => Object.keys(headers).some((name) => name.includes('copy-source')))
  return [
    ...twice.map(([name, its]) => `${name} was written ${its.length} times`),
    ...copies.map(({ target }) => `${target} is a copy`),
  ]
}
