// Rows in a metadata store, put there in one line. Everything goes through the port, so every engine can be filled.
import type { Digest, WellFormedDigest } from '../../../src/oci/digest.ts'
import type { RepositoryName, Tag } from '../../../src/oci/names.ts'
import { parseRepositoryPattern, type RepositoryPattern } from '../../../src/oci/repository-pattern.ts'
import type { NewAuditEntry } from '../../../src/ports/audit.ts'
import type { StorageKey } from '../../../src/ports/blob-store.ts'
import type { GarbageAges } from '../../../src/ports/garbage.ts'
import type { NewManifest } from '../../../src/ports/manifests.ts'
import type { MetadataStore, Tables } from '../../../src/ports/metadata-store.ts'
import type { RepositoryKey, RepositoryRow } from '../../../src/ports/repositories.ts'
import type { RowId } from '../../../src/ports/row-id.ts'
import type { TagChange } from '../../../src/ports/tags.ts'
import type { UploadId, UploadOwner } from '../../../src/ports/uploads.ts'
import { digestOf } from '../basics/generated-bytes.ts'
import { freshKey } from './stored-objects.ts'

/** One repository of one account, and the store that holds it. */
export interface Shelf {
  readonly metadata: MetadataStore
  readonly accountId: RowId
  readonly scope: RepositoryKey
  readonly repository: RepositoryRow
  readonly owner: UploadOwner
}

export const hourMs = 3_600_000

function agesOf(ms: number): GarbageAges {
  return {
    leaseMs: ms,
    quarantineMs: ms,
    uploadIdleMs: ms,
    uploadMaxMs: ms,
    uploadDoneMs: ms,
    untaggedMs: 0,
    undeleteMs: ms,
    tagHistoryMs: ms,
    holdMs: 0,
  }
}

/** Everything that may be collected at all is old enough. */
export const noAges = agesOf(0)

/** Nothing that a test has made is old enough. */
export const longAges = agesOf(hourMs)

/** Who moves tags in tests that do not care. */
export const tagChange: TagChange = { actor: { subject: 'tester' }, cause: 'push' }

/** An entry of the audit log as a test needs it. */
export function auditEntryOf(more: Partial<NewAuditEntry>): NewAuditEntry {
  return {
    account: 'acme',
    actor: 'ann',
    credential: 'f1',
    keyName: 'ci',
    address: '192.0.2.1',
    action: 'postUser',
    target: '/users',
    repository: undefined,
    outcome: 'done',
    reason: undefined,
    count: 1,
    happenedAt: 1_000_000,
    ...more,
  }
}

export function named(text: string): RepositoryName {
  return text as RepositoryName
}

export function patterned(text: string): RepositoryPattern {
  const pattern = parseRepositoryPattern(text)
  if (pattern === undefined) throw new Error(`${text} is no pattern`)
  return pattern
}

export function tagged(text: string): Tag {
  return text as Tag
}

export async function openShelf(metadata: MetadataStore, account = 'acme', name = 'app'): Promise<Shelf> {
  const { id: accountId } = await metadata.accounts.ensure(account)
  const scope = { accountId, repository: named(name) }
  const { id } = await metadata.transaction((tables) => tables.repositories.ensure(scope))
  return { metadata, accountId, scope, repository: { accountId, id }, owner: { ...scope, subject: 'alice' } }
}

export interface AddedBlob {
  readonly id: RowId
  readonly digest: Digest
  readonly key: StorageKey
}

/** A blob of `text`, linked by the shelf's repository; its bytes are not stored anywhere. */
export async function addBlob(shelf: Shelf, text: string): Promise<AddedBlob> {
  return addContent(shelf, text, undefined)
}

/** The same with its bytes in its row. */
export async function addInlineBlob(shelf: Shelf, text: string): Promise<AddedBlob> {
  return addContent(shelf, text, new TextEncoder().encode(text))
}

async function addContent(
  { metadata, repository }: Shelf,
  text: string,
  inlineBytes: Uint8Array | undefined,
): Promise<AddedBlob> {
  const [digest, key] = [digestOf(text), freshKey()]
  return metadata.transaction(async (tables) => {
    const made = await tables.blobs.add(repository.accountId, digest, { sizeBytes: text.length, key, inlineBytes })
    if (made === undefined) throw new Error(`${digest} is there already`)
    await tables.blobs.link(repository, made.id, digest)
    return { id: made.id, digest, key }
  })
}

export function manifestOf(text: string, more: Partial<NewManifest> = {}): NewManifest {
  const bytes = new TextEncoder().encode(text)
  return {
    digest: digestOf(bytes),
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    sizeBytes: bytes.length,
    bytes,
    subject: undefined,
    artifactType: undefined,
    annotations: undefined,
    ...more,
  }
}

export interface ManifestNeeds {
  readonly blobs?: readonly AddedBlob[]
  readonly children?: readonly { readonly id: RowId; readonly digest: Digest }[]
  /** Named, but not here yet. */
  readonly waiting?: readonly string[]
  readonly tag?: string
  readonly more?: Partial<NewManifest>
}

export interface AddedManifest {
  readonly id: RowId
  readonly digest: Digest
  readonly isNew: boolean
}

export async function addManifest(shelf: Shelf, text: string, needs: ManifestNeeds = {}): Promise<AddedManifest> {
  return shelf.metadata.transaction((tables) => saveManifest(tables, shelf, text, needs))
}

/** The steps of a push inside a transaction that the caller has. */
export async function saveManifest(
  { manifests, tags }: Tables,
  { repository }: Shelf,
  text: string,
  { blobs = [], children = [], waiting = [], tag, more }: ManifestNeeds = {},
): Promise<AddedManifest> {
  const manifest = manifestOf(text, more)
  const { id, isNew } = await manifests.save(repository, manifest)
  await manifests.saveEntries(repository, id, [
    ...blobs.map((blob) => ({ digest: blob.digest, blobId: blob.id, childId: undefined })),
    ...children.map((child) => ({ digest: child.digest, blobId: undefined, childId: child.id })),
    ...waiting.map((missing) => ({
      digest: digestOf(missing) as WellFormedDigest,
      blobId: undefined,
      childId: undefined,
    })),
  ])
  await manifests.fillEntries(repository, manifest.digest, id)
  if (tag !== undefined) await tags.point(repository, tagged(tag), id, tagChange)
  return { id, digest: manifest.digest, isNew }
}

export function freshUploadId(): UploadId {
  return crypto.randomUUID() as string as UploadId
}

/** Waits until new rows are younger, by the store's clock, than the existing ones. */
export async function passTime(): Promise<void> {
  await Bun.sleep(5)
}

/** The blob as the collector takes it, without its place in the queue. */
export function candidateOf({ accountId }: Shelf, { id, key }: AddedBlob) {
  return { accountId, blobId: id, storageKey: key, sizeBytes: 5 }
}
