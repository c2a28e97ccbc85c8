// Looks at a database and a bucket from outside, as a careful operator would, and tells everything that must not be.
import { askS3, readS3, xmlField, xmlFields } from '../s3/s3-server.ts'
import type { SharedStores } from './shared-stores.ts'

interface BlobRow {
  readonly digest: string
  readonly size: number
  readonly storage_key: string
}

interface KeyRow {
  readonly key: string
  readonly place: 'uploads' | 'blobs' | 'trash'
}

export interface StoresAudit {
  /** Every fault; an empty list is a sound registry. */
  readonly faults: readonly string[]
  /** Objects and unfinished uploads that no row names: what a writer leaves that was killed, and the sweep finds. */
  readonly strays: readonly string[]
  readonly blobs: number
  readonly manifests: number
}

const uploadKeyLength = 36

export async function auditShared(stores: SharedStores): Promise<StoresAudit> {
  const { ask } = stores
  const blobs = await ask<BlobRow>('SELECT digest, size_bytes::int AS size, storage_key FROM blobs ORDER BY id')
  const keys = await ask<KeyRow>(
    `SELECT storage_key AS key, 'uploads' AS place FROM uploads WHERE storage_key IS NOT NULL
     UNION ALL SELECT storage_key, 'blobs' FROM blobs UNION ALL SELECT storage_key, 'trash' FROM trash`,
  )
  const [counted] = await ask<{ manifests: number }>('SELECT count(*)::int AS manifests FROM manifests')
  const faults = [...(await ask<{ fault: string }>(faultsOfRows)).map(({ fault }) => fault), ...doubleKeys(keys)]
  for (const blob of blobs) faults.push(...(await auditBlob(stores, blob)))
  const strays = (await listKeys(stores)).filter((key) => !isNamed(key, keys))
  return { faults, strays, blobs: blobs.length, manifests: counted?.manifests ?? 0 }
}

function doubleKeys(keys: readonly KeyRow[]): string[] {
  const places = Map.groupBy(keys, ({ key }) => key)
  return [...places].flatMap(([key, rows]) =>
    rows.length < 2 ? [] : [`${key} stands in ${rows.map(({ place }) => place).join(' and ')}`],
  )
}

/** By itself, or as something that the writers of an upload have made. */
function isNamed(key: string, rows: readonly KeyRow[]): boolean {
  const upload = key.slice(0, uploadKeyLength)
  return rows.some((row) => row.key === key || (row.place !== 'blobs' && row.key === upload))
}

export function objectName({ prefix }: Pick<SharedStores, 'prefix'>, key: string): string {
  return `${prefix}${key.slice(uploadKeyLength - 2, uploadKeyLength)}/${key}`
}

async function auditBlob(stores: SharedStores, { digest, size, storage_key }: BlobRow): Promise<string[]> {
  const answer = await askS3(stores.s3, { method: 'GET', target: objectName(stores, storage_key) })
  if (answer.status !== 200) {
    await answer.arrayBuffer()
    return [`the object of ${digest} is missing (${answer.status})`]
  }
  const bytes = await answer.bytes()
  if (bytes.length !== size) return [`the object of ${digest} holds ${bytes.length} of ${size} bytes`]
  const algorithm = digest.startsWith('sha512:') ? 'sha512' : 'sha256'
  const isRight = `${algorithm}:${Bun.CryptoHasher.hash(algorithm, bytes, 'hex')}` === digest
  return isRight ? [] : [`the object of ${digest} holds other bytes`]
}

/** The keys of all objects, and of all multipart uploads that nobody has ended. */
export async function listKeys(stores: SharedStores): Promise<string[]> {
  const prefix = encodeURIComponent(stores.prefix)
  const names: string[] = []
  for (let token: string | undefined = ''; token !== undefined; ) {
    const more: string = token === '' ? '' : `&continuation-token=${encodeURIComponent(token)}`
    const { text } = await readS3(askS3(stores.s3, { method: 'GET', target: `?list-type=2&prefix=${prefix}${more}` }))
    names.push(...xmlFields(text, 'Key'))
    token = xmlField(text, 'IsTruncated') === 'true' ? xmlField(text, 'NextContinuationToken') : undefined
  }
  const { text } = await readS3(askS3(stores.s3, { method: 'GET', target: `?uploads&prefix=${prefix}` }))
  if (xmlField(text, 'IsTruncated') === 'true') throw new Error('more unfinished uploads than one list holds')
  return [...names, ...xmlFields(text, 'Key')]
    .map((name) => name.slice(stores.prefix.length))
    .flatMap((name) => (name.includes('/') ? [name.slice(3)] : []))
}

const hashed = (algorithm: string) => `'${algorithm}:' || encode(${algorithm}(payload), 'hex')`

const faultsOfRows = `
SELECT 'the manifest ' || digest || ' holds other bytes' AS fault FROM manifests
  WHERE length(payload) <> size_bytes OR digest NOT IN (${hashed('sha256')}, ${hashed('sha512')})
UNION ALL
SELECT 'a manifest names ' || e.digest || ' without a link of its repository' FROM manifest_entries e
  WHERE e.blob_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM blob_links l
    WHERE l.account_id = e.account_id AND l.repository_id = e.repository_id AND l.blob_id = e.blob_id)
UNION ALL
SELECT 'the manifest ' || m.digest || ' has lost its entry ' || d.digest FROM manifests m
  CROSS JOIN LATERAL (
    SELECT jsonb_path_query(convert_from(m.payload, 'UTF8')::jsonb, '$.layers[*].digest') #>> '{}' AS digest
    UNION SELECT convert_from(m.payload, 'UTF8')::jsonb #>> '{config,digest}'
    UNION SELECT jsonb_path_query(convert_from(m.payload, 'UTF8')::jsonb, '$.manifests[*].digest') #>> '{}') d
  WHERE d.digest IS NOT NULL AND NOT EXISTS (SELECT 1 FROM manifest_entries e
    WHERE e.account_id = m.account_id AND e.manifest_id = m.id AND e.digest = d.digest)
UNION ALL
SELECT 'a manifest waits for ' || e.digest || ', which its repository has' FROM manifest_entries e
  JOIN blobs b ON b.account_id = e.account_id AND b.digest = e.digest
  JOIN blob_links l ON l.account_id = e.account_id AND l.repository_id = e.repository_id AND l.blob_id = b.id
  WHERE e.blob_id IS NULL AND e.child_id IS NULL
UNION ALL
SELECT 'a manifest waits for ' || e.digest || ', which is here' FROM manifest_entries e
  JOIN manifests m ON m.account_id = e.account_id AND m.repository_id = e.repository_id AND m.digest = e.digest
  WHERE e.blob_id IS NULL AND e.child_id IS NULL
UNION ALL
SELECT r.name || ' counts ' || r.manifest_count || ' and has ' || count(m.id) FROM repositories r
  LEFT JOIN manifests m ON m.account_id = r.account_id AND m.repository_id = r.id
  GROUP BY r.id HAVING r.manifest_count <> count(m.id)
UNION ALL
SELECT a.name || ' counts ' || a.image_count || ' and has ' || count(r.id) FROM accounts a
  LEFT JOIN repositories r ON r.account_id = a.id AND r.manifest_count > 0
  GROUP BY a.id HAVING a.image_count <> count(r.id)`
