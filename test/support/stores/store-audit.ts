// Looks at a data folder from outside, as a careful operator would, and tells everything that must not be.
import { Database } from 'bun:sqlite'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { hashFile } from '../basics/generated-bytes.ts'

interface BlobRow {
  readonly digest: string
  readonly size_bytes: number
  readonly storage_key: string
}

/** Every fault of the stores; an empty list is a sound data folder. */
export async function auditStores(dataDir: string): Promise<string[]> {
  using database = new Database(join(dataDir, 'metadata.sqlite'), { readwrite: true })
  const blobs = database.query<BlobRow, []>('SELECT digest, size_bytes, storage_key FROM blobs').all()
  return [
    ...auditEngine(database),
    ...auditKeys(database, listFiles(dataDir)),
    ...(await Promise.all(blobs.map((blob) => auditBlob(dataDir, blob)))).flat(),
    ...auditManifests(database),
    ...auditCounts(database),
  ]
}

/** Storage keys that have a file, finished or not. */
export function listFiles(dataDir: string): string[] {
  const root = join(dataDir, 'blobs')
  const folders = readdirSync(root, { withFileTypes: true }).filter((entry) => entry.isDirectory())
  return folders.flatMap(({ name }) => readdirSync(join(root, name)))
}

/** The file that holds a blob's bytes. */
export function fileOfBlob(dataDir: string, digest: string): string {
  using database = new Database(join(dataDir, 'metadata.sqlite'), { readwrite: true })
  const query = database.query<BlobRow, [string]>('SELECT digest, size_bytes, storage_key FROM blobs WHERE digest = ?')
  const key = query.get(digest)?.storage_key
  if (key === undefined) throw new Error(`no blob ${digest}`)
  return join(dataDir, 'blobs', key.slice(-2), key)
}

/** How many rows a table has, or how many of them are such. */
export function countRows(dataDir: string, table: string, condition = 'true'): number {
  using database = new Database(join(dataDir, 'metadata.sqlite'), { readwrite: true })
  const row = database.query<{ rows: number }, []>(`SELECT count(*) AS rows FROM ${table} WHERE ${condition}`).get()
  return row?.rows ?? 0
}

function auditEngine(database: Database): string[] {
  const integrity = database.query<{ integrity_check: string }, []>('PRAGMA integrity_check').all()
  const dangling = database.query<{ table: string; parent: string }, []>('PRAGMA foreign_key_check').all()
  return [
    ...integrity.map((row) => row.integrity_check).filter((text) => text !== 'ok'),
    ...dangling.map((row) => `a row of ${row.table} points to nothing in ${row.parent}`),
  ]
}

function auditKeys(database: Database, files: readonly string[]): string[] {
  const rows = database
    .query<{ storage_key: string; place: string }, []>(
      `SELECT storage_key, 'uploads' AS place FROM uploads WHERE storage_key IS NOT NULL
       UNION ALL SELECT storage_key, 'blobs' FROM blobs UNION ALL SELECT storage_key, 'trash' FROM trash`,
    )
    .all()
  const places = new Map<string, string[]>()
  for (const { storage_key, place } of rows) places.set(storage_key, [...(places.get(storage_key) ?? []), place])
  return [
    ...[...places].filter(([, its]) => its.length > 1).map(([key, its]) => `${key} stands in ${its.join(' and ')}`),
    ...files.filter((key) => !places.has(key)).map((key) => `the file ${key} is named by no row`),
  ]
}

async function auditBlob(dataDir: string, { digest, size_bytes, storage_key }: BlobRow): Promise<string[]> {
  const path = join(dataDir, 'blobs', storage_key.slice(-2), storage_key)
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined) return [`the file of ${digest} is missing`]
  if (found.size !== size_bytes) return [`the file of ${digest} holds ${found.size} of ${size_bytes} bytes`]
  const actual = await hashFile(path, digest.startsWith('sha512:') ? 'sha512' : 'sha256')
  return actual === digest ? [] : [`the file of ${digest} holds other bytes`]
}

function auditManifests(database: Database): string[] {
  const manifests = database
    .query<{ digest: string; payload: Uint8Array; size_bytes: number }, []>(
      'SELECT digest, payload, size_bytes FROM manifests',
    )
    .all()
  const unlinked = database
    .query<{ digest: string }, []>(
      `SELECT e.digest FROM manifest_entries e WHERE e.blob_id IS NOT NULL AND NOT EXISTS (
         SELECT 1 FROM blob_links l WHERE l.account_id = e.account_id AND l.repository_id = e.repository_id
           AND l.blob_id = e.blob_id)`,
    )
    .all()
  const waiting = database
    .query<{ digest: string }, []>(
      `SELECT e.digest FROM manifest_entries e
       JOIN blobs b ON b.account_id = e.account_id AND b.digest = e.digest
       JOIN blob_links l ON l.account_id = e.account_id AND l.repository_id = e.repository_id AND l.blob_id = b.id
       WHERE e.blob_id IS NULL AND e.child_id IS NULL`,
    )
    .all()
  return [
    ...manifests.filter((row) => !isIntact(row)).map((row) => `the manifest ${row.digest} holds other bytes`),
    ...unlinked.map((row) => `a manifest names ${row.digest} without a link of its repository`),
    ...waiting.map((row) => `a manifest waits for ${row.digest}, which its repository has`),
  ]
}

function isIntact({
  digest,
  payload,
  size_bytes,
}: {
  digest: string
  payload: Uint8Array
  size_bytes: number
}): boolean {
  const algorithm = digest.startsWith('sha512:') ? 'sha512' : 'sha256'
  return payload.length === size_bytes && digest === `${algorithm}:${Bun.CryptoHasher.hash(algorithm, payload, 'hex')}`
}

function auditCounts(database: Database): string[] {
  const repositories = database
    .query<{ name: string; kept: number; counted: number }, []>(
      `SELECT r.name, r.manifest_count AS kept,
         (SELECT count(*) FROM manifests m WHERE m.account_id = r.account_id AND m.repository_id = r.id) AS counted
       FROM repositories r`,
    )
    .all()
  const accounts = database
    .query<{ name: string; kept: number; counted: number }, []>(
      `SELECT a.name, a.image_count AS kept,
         (SELECT count(*) FROM repositories r WHERE r.account_id = a.id AND r.manifest_count > 0) AS counted
       FROM accounts a`,
    )
    .all()
  return [...repositories, ...accounts]
    .filter((row) => row.kept !== row.counted)
    .map((row) => `${row.name} counts ${row.kept} and has ${row.counted}`)
}
