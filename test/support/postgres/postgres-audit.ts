// Looks at a PostgreSQL database and at the blobs beside it from outside, and tells everything that must not be: what
// store-audit.ts does for SQLite.
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { hashFile } from '../basics/generated-bytes.ts'

/** Each gives a text for each fault. Foreign keys hold by themselves. */
const faultsInRows = [
  `SELECT storage_key || ' stands in ' || string_agg(place, ' and ') AS fault FROM (
     SELECT storage_key, 'uploads' AS place FROM uploads WHERE storage_key IS NOT NULL
     UNION ALL SELECT storage_key, 'blobs' FROM blobs UNION ALL SELECT storage_key, 'trash' FROM trash) AS keys
   GROUP BY storage_key HAVING count(*) > 1`,
  `SELECT 'a manifest waits for ' || e.digest || ', which its repository has' AS fault FROM manifest_entries e
   JOIN blobs b ON b.account_id = e.account_id AND b.digest = e.digest
   JOIN blob_links l ON l.account_id = e.account_id AND l.repository_id = e.repository_id AND l.blob_id = b.id
   WHERE e.blob_id IS NULL AND e.child_id IS NULL`,
  `SELECT 'the manifest ' || digest || ' holds other bytes' AS fault FROM manifests
   WHERE digest <> 'sha256:' || encode(sha256(payload), 'hex') OR size_bytes <> length(payload)`,
  `SELECT r.name || ' counts ' || r.manifest_count || ' manifests and has ' || count(m.id) AS fault
   FROM repositories r LEFT JOIN manifests m ON m.account_id = r.account_id AND m.repository_id = r.id
   GROUP BY r.id HAVING r.manifest_count <> count(m.id)`,
  `SELECT a.name || ' counts ' || a.image_count || ' images and has ' || count(r.id) AS fault
   FROM accounts a LEFT JOIN repositories r ON r.account_id = a.id AND r.manifest_count > 0
   GROUP BY a.id HAVING a.image_count <> count(r.id)`,
  `SELECT 'a blob without a link, and not in the queue: ' || b.digest AS fault FROM blobs b
   WHERE NOT EXISTS (SELECT 1 FROM blob_links l WHERE l.blob_id = b.id)
     AND NOT EXISTS (SELECT 1 FROM blob_queue q WHERE q.blob_id = b.id)`,
]

interface BlobRow {
  readonly digest: string
  readonly size_bytes: number
  readonly storage_key: string
}

/** Every fault of the stores; none, if they are sound. `dataDir` is that of the server that keeps its blobs on a disk. */
export async function auditPostgres(url: string, dataDir: string): Promise<string[]> {
  const sql = new Bun.SQL({ url, max: 1 })
  try {
    const faults: string[] = []
    for (const statement of faultsInRows) {
      const rows: { readonly fault: string }[] = await sql.unsafe(statement)
      faults.push(...rows.map(({ fault }) => fault))
    }
    const named: { readonly storage_key: string }[] = await sql`
      SELECT storage_key FROM uploads WHERE storage_key IS NOT NULL
      UNION ALL SELECT storage_key FROM blobs UNION ALL SELECT storage_key FROM trash`
    const keys = new Set(named.map(({ storage_key }) => storage_key))
    const strays = listFiles(dataDir).filter((key) => !keys.has(key))
    const blobs: BlobRow[] = await sql`SELECT digest, size_bytes::int, storage_key FROM blobs`
    const damaged = await Promise.all(blobs.map((blob) => auditBlob(dataDir, blob)))
    return [...faults, ...strays.map((key) => `the file ${key} is named by no row`), ...damaged.flat()]
  } finally {
    await sql.close()
  }
}

/** Storage keys that have a file, finished or not. */
function listFiles(dataDir: string): string[] {
  const entries = readdirSync(join(dataDir, 'blobs'), { withFileTypes: true })
  const folders = entries.filter((entry) => entry.isDirectory())
  return folders.flatMap(({ name }) => readdirSync(join(dataDir, 'blobs', name)))
}

async function auditBlob(dataDir: string, { digest, size_bytes, storage_key }: BlobRow): Promise<string[]> {
  const path = join(dataDir, 'blobs', storage_key.slice(-2), storage_key)
  const size = statSync(path, { throwIfNoEntry: false })?.size
  if (size === undefined) return [`the file of ${digest} is missing`]
  if (size !== size_bytes) return [`the file of ${digest} holds ${size} of ${size_bytes} bytes`]
  return (await hashFile(path, 'sha256')) === digest ? [] : [`the file of ${digest} holds other bytes`]
}
