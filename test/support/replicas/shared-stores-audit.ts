// Checks a PostgreSQL database and a bucket from outside, and lists everything that must not be.
import { digestOf } from '../basics/generated-bytes.ts'
import { askS3, readS3, xmlField, xmlFields } from '../s3/s3-server.ts'
import { type AuditedBlob, type AuditedKey, auditRows } from '../stores/store-audit.ts'
import type { SharedStores } from './shared-stores.ts'

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
  const { faults, keys, objects, blobs, manifests } = await auditRows(stores.ask)
  for (const blob of objects) faults.push(...(await auditBlob(stores, blob)))
  const strays = (await listKeys(stores)).filter((key) => !isNamed(key, keys))
  return { faults, strays, blobs, manifests }
}

/** By itself, or as something that the writers of an upload have made. */
function isNamed(key: string, rows: readonly AuditedKey[]): boolean {
  const upload = key.slice(0, uploadKeyLength)
  return rows.some((row) => row.key === key || (row.place !== 'blobs' && row.key === upload))
}

export function objectName({ prefix }: Pick<SharedStores, 'prefix'>, key: string): string {
  return `${prefix}${key.slice(uploadKeyLength - 2, uploadKeyLength)}/${key}`
}

async function auditBlob(stores: SharedStores, { digest, size, storage_key }: AuditedBlob): Promise<string[]> {
  const answer = await askS3(stores.s3, { method: 'GET', target: objectName(stores, storage_key) })
  if (answer.status !== 200) {
    await answer.arrayBuffer()
    return [`the object of ${digest} is missing (${answer.status})`]
  }
  const bytes = await answer.bytes()
  if (bytes.length !== size) return [`the object of ${digest} holds ${bytes.length} of ${size} bytes`]
  const isRight = digestOf(bytes, digest.startsWith('sha512:') ? 'sha512' : 'sha256') === digest
  return isRight ? [] : [`the object of ${digest} holds other bytes`]
}

/** The keys of all objects, and of all open multipart uploads. */
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
