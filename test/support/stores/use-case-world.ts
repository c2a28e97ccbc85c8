// The registry's use cases on SQLite and files, without a server, for tests that hold them at gates.
import { join } from 'node:path'
import { FilesystemBlobStore } from '../../../src/adapters/blobs-filesystem/filesystem-blob-store.ts'
import { systemClock } from '../../../src/adapters/clock-system/system-clock.ts'
import { StatfsDiskSpace } from '../../../src/adapters/disk-space-statfs/statfs-disk-space.ts'
import { SqlMetadataStore } from '../../../src/adapters/metadata-sql/sql-metadata-store.ts'
import { SqliteDatabase } from '../../../src/adapters/metadata-sql/sqlite-database.ts'
import { readConfig } from '../../../src/app/config.ts'
import { toRegistrySettings } from '../../../src/app/registry-settings.ts'
import type { Digest } from '../../../src/oci/digest.ts'
import type { RegistryRefusal } from '../../../src/oci/errors.ts'
import type { BlobStore } from '../../../src/ports/blob-store.ts'
import type { DiskSpace } from '../../../src/ports/disk-space.ts'
import type { GarbageAges } from '../../../src/ports/garbage.ts'
import type { Principal, Right } from '../../../src/ports/identity.ts'
import type { MetadataStore } from '../../../src/ports/metadata-store.ts'
import type { RepositoryKey } from '../../../src/ports/repositories.ts'
import { openBlob } from '../../../src/registry/blobs.ts'
import { collectGarbage } from '../../../src/registry/garbage.ts'
import { pushManifest } from '../../../src/registry/manifest-push.ts'
import type { RegistrySettings } from '../../../src/registry/settings.ts'
import type { IncomingChunk } from '../../../src/registry/upload-turn.ts'
import { UploadWriters } from '../../../src/registry/upload-writers.ts'
import { uploadAtOnce } from '../../../src/registry/uploads.ts'
import { digestOf } from '../basics/generated-bytes.ts'
import { manifestOfBlobs } from '../clients/registry-client.ts'
import { hourMs, named, tagChange, tagged } from './metadata-rows.ts'
import { damageMetadata } from './store-damage.ts'
import { readAll } from './stored-objects.ts'

/** Leases of an hour, and no quarantine: blobs in the trash lose their bytes at once. */
export const ages: GarbageAges = {
  leaseMs: hourMs,
  quarantineMs: 0,
  uploadIdleMs: hourMs,
  uploadMaxMs: 24 * hourMs,
  uploadDoneMs: hourMs,
  untaggedMs: 0,
  undeleteMs: 0,
  tagHistoryMs: hourMs,
  holdMs: 0,
}

export interface World {
  readonly dataDir: string
  readonly metadata: MetadataStore
  readonly blobs: BlobStore
  readonly clock: typeof systemClock
  readonly disk: DiskSpace
  readonly writers: UploadWriters
  readonly settings: RegistrySettings
}

export async function openWorld(dataDir: string, settings: Partial<RegistrySettings> = {}): Promise<World> {
  const metadata = await SqlMetadataStore.open(new SqliteDatabase(join(dataDir, 'metadata.sqlite')))
  return {
    dataDir,
    metadata,
    blobs: await FilesystemBlobStore.open(join(dataDir, 'blobs')),
    clock: systemClock,
    disk: new StatfsDiskSpace([], 0, systemClock),
    writers: new UploadWriters(systemClock),
    settings: { ...defaultSettings, ...settings },
  }
}

const defaultSettings: RegistrySettings = {
  ...toRegistrySettings(readConfig('/dev/null', {})),
  // Tests of objects need files. Tests of inline blobs set a limit.
  inlineBytesMax: 0,
  blobBytesMax: 1024 * 1024 * 1024,
  uploadsPerRepositoryMax: 1_000,
  uploadsPerPrincipalMax: 1_000,
  leaseMs: hourMs,
  quarantineMs: 0,
  uploadIdleMs: hourMs,
  uploadMaxMs: 24 * hourMs,
}

/** All leases, queue entries and sessions become so much older. */
export function grow(world: World, ageMs = 2 * hourMs): void {
  damageMetadata(world.dataDir, `UPDATE blob_links SET leased_at = leased_at - ${ageMs}`)
  damageMetadata(world.dataDir, `UPDATE blob_queue SET queued_at = queued_at - ${ageMs}`)
  damageMetadata(world.dataDir, `UPDATE deleted_manifests SET deleted_at = deleted_at - ${ageMs}`)
}

export async function scopeOf(world: World, repository = 'app', account = 'acme'): Promise<RepositoryKey> {
  const { id } = await world.metadata.accounts.ensure(account)
  return { accountId: id, repository: named(repository) }
}

export function bodyOf(...pieces: Uint8Array[]): IncomingChunk {
  const lengthBytes = pieces.reduce((sum, piece) => sum + piece.length, 0)
  const body = Object.assign(iterate(pieces), { cancel: () => undefined })
  return { body, first: undefined, lengthBytes }
}

/** Copies, because a store may free the memory of what it gets. */
async function* iterate(pieces: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  for (const piece of pieces) yield piece.slice()
}

export async function upload(world: World, scope: RepositoryKey, text: string): Promise<Digest> {
  const bytes = new TextEncoder().encode(text)
  const digest = digestOf(bytes)
  await uploadAtOnce(world, { ...scope, subject: 'alice' }, digest, bodyOf(bytes))
  return digest
}

/** An image of one config and these layers, which must be there already unless missing content is allowed. */
export async function push(
  world: World,
  scope: RepositoryKey,
  tag: string,
  layers: readonly string[],
): Promise<Digest> {
  const encode = (text: string) => new TextEncoder().encode(text)
  const bytes = manifestOfBlobs(encode('{}'), layers.map(encode), tag)
  const mediaType = 'application/vnd.oci.image.manifest.v1+json'
  const pushed = { ...tagChange, reference: { tag: tagged(tag) }, tags: [], mediaType, bytes }
  return (await pushManifest(world, scope, pushed)).digest
}

export function collect(world: Pick<World, 'metadata' | 'blobs'>, more: Partial<GarbageAges> = {}) {
  return collectGarbage(world, { ...ages, ...more })
}

/** The blob's text as a pull would get it, or the word of the refusal. */
export async function pull(world: World, scope: RepositoryKey, digest: Digest): Promise<string> {
  try {
    const bytes = await readAll(await (await openBlob(world, scope, digest)).open())
    return new TextDecoder().decode(bytes)
  } catch (error) {
    return (error as RegistryRefusal).refusal ?? String(error)
  }
}

export function principalWith(...rights: Right[]): Principal {
  return { account: 'acme', subject: 'alice', roles: [], grants: [{ rights: new Set(rights) }], fingerprint: '' }
}
