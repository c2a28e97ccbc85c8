// The two ends of a move in this process: SQLite and memory, with blobs at the source.
import { afterAll, expect } from 'bun:test'
import { join } from 'node:path'
import { SqlMetadataStore } from '../../../../src/adapters/metadata-sql/sql-metadata-store.ts'
import { SqliteDatabase } from '../../../../src/adapters/metadata-sql/sqlite-database.ts'
import { copyBlobs } from '../../../../src/app/store-move/copy-blobs.ts'
import type { Digest } from '../../../../src/oci/digest.ts'
import type { BlobStore, StorageKey } from '../../../../src/ports/blob-store.ts'
import type { CopiedObjects, MovableBlob } from '../../../../src/ports/store-move.ts'
import { digestOf, generatedBytes } from '../../../support/basics/generated-bytes.ts'
import { useTemporaryFolders } from '../../../support/basics/temporary-folders.ts'
import { MemoryBlobStore } from '../../../support/stores/memory-blob-store.ts'
import { openShelf, type Shelf } from '../../../support/stores/metadata-rows.ts'
import { freshKey, readAll, storeWhole } from '../../../support/stores/stored-objects.ts'

export interface End {
  readonly path: string
  readonly metadata: SqlMetadataStore
  readonly blobs: MemoryBlobStore
}

export async function store(
  { metadata, blobs }: End,
  { repository }: Shelf,
  bytes: Uint8Array,
  digest = digestOf(bytes),
) {
  const key = await storeWhole(blobs, bytes)
  await metadata.transaction((tables) =>
    tables.blobs.add(repository.accountId, digest, { sizeBytes: bytes.length, key }),
  )
  return { key, digest }
}

export interface CopyWorld {
  readonly from: End
  readonly to: End
  readonly shelf: Shelf
  readonly stored: readonly { readonly key: StorageKey; readonly digest: Digest }[]
}

interface Seen {
  readonly blobs: MovableBlob[]
  readonly retries: unknown[]
  bytes: number
}

export interface Change {
  readonly source?: Pick<BlobStore, 'read'>
  readonly target?: Pick<BlobStore, 'openWriter'>
  readonly copied?: (copied: CopiedObjects) => CopiedObjects
  readonly atOnce?: number
}

async function copy({ from, to }: CopyWorld, { source, target, copied, atOnce = 4 }: Change = {}) {
  const seen: Seen = { blobs: [], retries: [], bytes: 0 }
  const notes = to.metadata.copiedObjects()
  const needs = {
    from: { movable: from.metadata.movableBlobs(), blobs: source ?? from.blobs },
    to: { copied: copied?.(notes) ?? notes, blobs: target ?? to.blobs },
    clock: { freshId: () => freshKey() },
  }
  const outcome = await copyBlobs(needs, atOnce, {
    onBlob: (blob) => seen.blobs.push(blob),
    onBytes: (bytes) => {
      seen.bytes += bytes
    },
    onRetry: async (error) => {
      seen.retries.push(error)
    },
  })
  return { ...outcome, seen }
}

interface Note {
  readonly source_key: StorageKey
  readonly storage_key: StorageKey
  readonly digest: string
  readonly size_bytes: number
}

async function lookInto({ to }: CopyWorld) {
  const database = new SqliteDatabase(to.path)
  const notes = await database.all<Note>('SELECT * FROM copied_objects ORDER BY source_key', [])
  const trash = await database.all<{ storage_key: StorageKey }>('SELECT storage_key FROM trash', [])
  await database.close()
  return { notes, trash: trash.map((row) => row.storage_key) }
}

/** Every record names an object with its digest. */
async function expectSound(world: CopyWorld): Promise<void> {
  for (const { storage_key, digest, size_bytes } of (await lookInto(world)).notes) {
    const bytes = await readAll(await world.to.blobs.open(storage_key, size_bytes))
    expect(bytes && digestOf(bytes)).toBe(digest as Digest)
  }
}

/** Called at the top of a test file. */
export function useCopyWorlds() {
  const newFolder = useTemporaryFolders('store-move')
  const opened: SqlMetadataStore[] = []
  afterAll(async () => {
    for (const metadata of opened) await metadata.close()
  })
  const openEnd = async (): Promise<End> => {
    const path = join(newFolder(), 'metadata.sqlite')
    const metadata = await SqlMetadataStore.open(new SqliteDatabase(path))
    opened.push(metadata)
    return { path, metadata, blobs: new MemoryBlobStore() }
  }
  const openWorld = async (blobs = 0): Promise<CopyWorld> => {
    const [from, to] = [await openEnd(), await openEnd()]
    const shelf = await openShelf(from.metadata)
    const stored: { key: StorageKey; digest: Digest }[] = []
    for (let at = 0; at < blobs; at += 1) stored.push(await store(from, shelf, generatedBytes(1_000 + at, at)))
    return { from, to, shelf, stored }
  }
  return { openWorld, copy, lookInto, expectSound }
}
