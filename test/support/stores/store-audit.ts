// Checks rows and files from outside, and lists everything that must not be: for SQLite and PostgreSQL with blobs in a data
// folder. For shared stores with blobs in S3: replicas/shared-stores-audit.ts, which checks rows by the same rules.
import { Database } from 'bun:sqlite'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { digestOf, hashFile } from '../basics/generated-bytes.ts'

export type Ask = <R extends object>(sql: string) => Promise<readonly R[]>

export interface AuditedBlob {
  readonly digest: string
  readonly size: number
  readonly storage_key: string
}

interface BlobRow extends AuditedBlob {
  /** The bytes of an inline blob. */
  readonly content: Uint8Array | null
}

export interface AuditedKey {
  readonly key: string
  readonly place: 'uploads' | 'blobs' | 'trash'
}

interface ManifestRow {
  readonly id: number
  readonly digest: string
  readonly payload: Uint8Array
  readonly size: number
}

interface Document {
  readonly config?: { readonly digest: string }
  readonly layers?: readonly { readonly digest: string; readonly urls?: unknown }[]
  readonly manifests?: readonly { readonly digest: string }[]
}

/** Every fault of the stores; an empty list is a sound data folder. */
export async function auditStores(dataDir: string): Promise<string[]> {
  using database = openDatabase(dataDir)
  const { faults } = await auditFolder(async (sql) => database.query<never, []>(sql).all(), dataDir)
  const integrity = database.query<{ integrity_check: string }, []>('PRAGMA integrity_check').all()
  const dangling = database.query<{ table: string; parent: string }, []>('PRAGMA foreign_key_check').all()
  return [
    ...integrity.map((row) => row.integrity_check).filter((text) => text !== 'ok'),
    ...dangling.map((row) => `a row of ${row.table} points to nothing in ${row.parent}`),
    ...faults,
  ]
}

/** The same for a server with its metadata in PostgreSQL. */
export async function auditPostgres(url: string, dataDir: string): Promise<string[]> {
  const sql = new Bun.SQL({ url, max: 1 })
  try {
    return (await auditFolder((statement) => sql.unsafe(statement), dataDir)).faults
  } finally {
    await sql.close()
  }
}

async function auditFolder(ask: Ask, dataDir: string): Promise<{ readonly faults: string[] }> {
  const { faults, keys, objects } = await auditRows(ask)
  const named = new Set(keys.map(({ key }) => key))
  const orphans = listFiles(dataDir).filter((key) => !named.has(key))
  const damaged = await Promise.all(objects.map((blob) => auditFile(dataDir, blob)))
  return { faults: [...faults, ...orphans.map((key) => `the file ${key} is named by no row`), ...damaged.flat()] }
}

async function auditFile(dataDir: string, { digest, size, storage_key: key }: AuditedBlob): Promise<string[]> {
  const path = join(dataDir, 'blobs', key.slice(-2), key)
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined) return [`the file of ${digest} is missing`]
  if (found.size !== size) return [`the file of ${digest} holds ${found.size} of ${size} bytes`]
  const isRight = (await hashFile(path, digest.startsWith('sha512:') ? 'sha512' : 'sha256')) === digest
  return isRight ? [] : [`the file of ${digest} holds other bytes`]
}

/** Storage keys that have a file, finished or not. */
export function listFiles(dataDir: string): string[] {
  const root = join(dataDir, 'blobs')
  const folders = readdirSync(root, { withFileTypes: true }).filter((entry) => entry.isDirectory())
  return folders.flatMap(({ name }) => readdirSync(join(root, name)))
}

/** The file that holds a blob's bytes. */
export function fileOfBlob(dataDir: string, digest: string): string {
  using database = openDatabase(dataDir)
  const query = database.query<{ key: string }, [string]>('SELECT storage_key AS key FROM blobs WHERE digest = ?')
  const key = query.get(digest)?.key
  if (key === undefined) throw new Error(`no blob ${digest}`)
  return join(dataDir, 'blobs', key.slice(-2), key)
}

/** How many rows a table has, or how many of them meet the condition. */
export function countRows(dataDir: string, table: string, condition = 'true'): number {
  using database = openDatabase(dataDir)
  const row = database.query<{ rows: number }, []>(`SELECT count(*) AS rows FROM ${table} WHERE ${condition}`).get()
  return row?.rows ?? 0
}

function openDatabase(dataDir: string): Database {
  return new Database(join(dataDir, 'metadata.sqlite'), { readwrite: true })
}

/** What the rows of either engine contradict among themselves, and the objects that they name. */
export async function auditRows(ask: Ask) {
  const keys = await ask<AuditedKey>(
    `SELECT storage_key AS key, 'uploads' AS place FROM uploads WHERE storage_key IS NOT NULL
     UNION ALL SELECT storage_key, 'blobs' FROM blobs UNION ALL SELECT storage_key, 'trash' FROM trash`,
  )
  const blobs = await ask<BlobRow>(
    'SELECT digest, CAST(size_bytes AS integer) AS size, storage_key, content FROM blobs ORDER BY id',
  )
  const manifests = await ask<ManifestRow>(
    'SELECT CAST(id AS integer) AS id, digest, payload, CAST(size_bytes AS integer) AS size FROM manifests',
  )
  const entries = await ask<{ name: string }>(
    "SELECT CAST(manifest_id AS text) || ' ' || digest AS name FROM manifest_entries",
  )
  const known = new Set(entries.map(({ name }) => name))
  const doubled = [...Map.groupBy(keys, ({ key }) => key)].filter(([, its]) => its.length > 1)
  const rowFaults: string[] = []
  for (const statement of faultStatements) {
    rowFaults.push(...(await ask<{ fault: string }>(statement)).map(({ fault }) => fault))
  }
  const faults = [
    ...doubled.map(([key, its]) => `${key} stands in ${its.map(({ place }) => place).join(' and ')}`),
    ...blobs.flatMap(auditInline),
    ...manifests.flatMap((manifest) => auditManifest(manifest, known)),
    ...rowFaults,
  ]
  const objects = blobs.filter(({ content }) => content === null)
  return { faults, keys, objects, blobs: blobs.length, manifests: manifests.length }
}

function auditInline({ digest, size, content }: BlobRow): string[] {
  if (content === null) return []
  const isRight =
    content.length === Number(size) && digestOf(content, digest.startsWith('sha512:') ? 'sha512' : 'sha256') === digest
  return isRight ? [] : [`the row of ${digest} holds other bytes`]
}

function auditManifest({ id, digest, payload, size }: ManifestRow, entries: ReadonlySet<string>): string[] {
  const algorithm = digest.startsWith('sha512:') ? 'sha512' : 'sha256'
  if (payload.length !== size || digestOf(payload, algorithm) !== digest)
    return [`the manifest ${digest} holds other bytes`]
  const { config, layers = [], manifests = [] }: Document = JSON.parse(new TextDecoder().decode(payload))
  const needed = [...(config === undefined ? [] : [config]), ...layers.filter(({ urls }) => !urls), ...manifests]
  const lost = needed.filter((descriptor) => !entries.has(`${id} ${descriptor.digest}`))
  return lost.map((descriptor) => `the manifest ${digest} has lost its entry ${descriptor.digest}`)
}

/** Usage with the changes that are not folded yet. */
function sumsBy(key: 'account_id' | 'repository_id', ...columns: readonly string[]): string {
  const from = key === 'account_id' ? 'account_usage' : 'repository_usage'
  const each = [key, ...columns].join(', ')
  return `SELECT ${key}, ${columns.map((column) => `sum(${column}) AS ${column}`).join(', ')}
    FROM (SELECT ${each} FROM ${from} UNION ALL SELECT ${each} FROM usage_changes) AS parts GROUP BY ${key}`
}

const faultStatements: readonly string[] = [
  `SELECT 'a manifest names ' || e.digest || ' without a link of its repository' AS fault FROM manifest_entries e
   WHERE e.blob_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM blob_links l
     WHERE l.account_id = e.account_id AND l.repository_id = e.repository_id AND l.blob_id = e.blob_id)`,
  `SELECT 'a manifest waits for ' || e.digest || ', which its repository has' AS fault FROM manifest_entries e
   JOIN blobs b ON b.account_id = e.account_id AND b.digest = e.digest
   JOIN blob_links l ON l.account_id = e.account_id AND l.repository_id = e.repository_id AND l.blob_id = b.id
   WHERE e.blob_id IS NULL AND e.child_id IS NULL`,
  `SELECT 'a manifest waits for ' || e.digest || ', which is here' AS fault FROM manifest_entries e
   JOIN manifests m ON m.account_id = e.account_id AND m.repository_id = e.repository_id AND m.digest = e.digest
   WHERE e.blob_id IS NULL AND e.child_id IS NULL`,
  `SELECT 'a blob without a link, and not in the queue: ' || b.digest AS fault FROM blobs b
   WHERE NOT EXISTS (SELECT 1 FROM blob_links l WHERE l.account_id = b.account_id AND l.blob_id = b.id)
     AND NOT EXISTS (SELECT 1 FROM blob_queue q WHERE q.account_id = b.account_id AND q.blob_id = b.id)
     AND NOT EXISTS (SELECT 1 FROM deleted_entries d WHERE d.account_id = b.account_id AND d.blob_id = b.id)`,
  `SELECT r.name || ' is marked as an image: ' || r.is_image || ', and has manifests: ' || count(m.id) AS fault
   FROM repositories r LEFT JOIN manifests m ON m.account_id = r.account_id AND m.repository_id = r.id
   GROUP BY r.id, r.name, r.is_image HAVING (r.is_image > 0) <> (count(m.id) > 0)`,
  `SELECT a.name || ' counts ' || u.images || ' images and has ' || count(r.id) AS fault
   FROM accounts a JOIN (${sumsBy('account_id', 'images')}) u ON u.account_id = a.id
   LEFT JOIN repositories r ON r.account_id = a.id AND r.is_image > 0
   GROUP BY a.id, a.name, u.images HAVING u.images <> count(r.id)`,
  `SELECT r.name || ' counts ' || u.manifests || ' manifests, ' || u.tags || ' tags, ' || u.bytes || ' bytes' AS fault
   FROM repositories r JOIN (${sumsBy('repository_id', 'manifests', 'tags', 'bytes')}) u ON u.repository_id = r.id
   WHERE u.manifests <> (SELECT count(*) FROM manifests m WHERE m.repository_id = r.id)
     OR u.tags <> (SELECT count(*) FROM tags t WHERE t.repository_id = r.id)
     OR u.bytes <> (SELECT coalesce(sum(m.size_bytes), 0) FROM manifests m WHERE m.repository_id = r.id)
       + (SELECT coalesce(sum(b.size_bytes), 0) FROM blob_links l JOIN blobs b ON b.id = l.blob_id
          WHERE l.repository_id = r.id)`,
  `SELECT a.name || ' counts ' || u.stored_bytes || ' stored bytes' AS fault
   FROM accounts a JOIN (${sumsBy('account_id', 'stored_bytes')}) u ON u.account_id = a.id
   WHERE u.stored_bytes <> (SELECT coalesce(sum(m.size_bytes), 0) FROM manifests m WHERE m.account_id = a.id)
     + (SELECT coalesce(sum(b.size_bytes), 0) FROM blobs b WHERE b.account_id = a.id AND b.owner_id IS NOT NULL)`,
]
