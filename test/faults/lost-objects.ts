// The stores of a server, for harm from outside: objects that vanish, are cut short or come back, and stores that are not there.
import { Database } from 'bun:sqlite'
import { readFileSync, renameSync, truncateSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { toObjectName } from '../../src/adapters/blobs-s3/object-names.ts'
import { parseNotes } from '../../src/adapters/blobs-s3/upload-state.ts'
import type { StorageKey } from '../../src/ports/blob-store.ts'
import type { SharedStores } from '../support/replicas/shared-stores.ts'
import { askS3, type S3Server } from '../support/s3/s3-server.ts'
import { freshPrefix, sharedS3 } from '../support/s3/test-s3.ts'
import { s3Variables, sharedPostgres } from '../support/stores/test-stores.ts'

export interface StoreKind {
  readonly metadata: 'SQLite' | 'PostgreSQL'
  readonly blobs: 'files' | 'S3'
}

/** What undoes it. */
type Undo = () => Promise<void>

interface Objects {
  remove(key: StorageKey): Promise<Undo>
  cut(key: StorageKey): Promise<void>
  /** The whole store is another one for a while: neither the object nor the owner's name is there. */
  hide(key: StorageKey): Promise<Undo>
}

export interface Damageable extends Objects {
  /** What a server has to be told to work on them. */
  readonly settings: Readonly<Record<string, string>>
  keyOf(digest: string): Promise<StorageKey>
  listTrash(): Promise<string[]>
  /** What is stored of unfinished uploads, as long as each is small. */
  keysOfUploads(): Promise<StorageKey[]>
  close(): Promise<void>
}

interface KeyRow {
  readonly storage_key: StorageKey
  readonly notes?: string | null
}

type Ask = (sql: string) => Promise<readonly KeyRow[]>

export async function damageableStores(kind: StoreKind, dataDir: string): Promise<Damageable>
export async function damageableStores(kind: { readonly shared: SharedStores }): Promise<Damageable>
export async function damageableStores(
  kind: StoreKind | { readonly shared: SharedStores },
  dataDir = '',
): Promise<Damageable> {
  if ('shared' in kind) {
    const { s3, prefix, settings, ask } = kind.shared
    return { settings, ...s3Objects(s3, prefix), ...rows(ask), close: async () => undefined }
  }
  const { settings: blobSettings, ...objects } = await objectsOf(kind, dataDir)
  if (kind.metadata === 'SQLite') {
    const ask: Ask = async (sql) => {
      using database = new Database(join(dataDir, 'metadata.sqlite'), { readwrite: true })
      return database.query<KeyRow, []>(sql).all()
    }
    return { settings: blobSettings, ...objects, ...rows(ask), close: async () => undefined }
  }
  const url = await (await sharedPostgres()).newDatabase()
  const sql = new Bun.SQL({ url, max: 1 })
  return {
    settings: { ...blobSettings, BERTH_METADATA__URL: url, BERTH_METADATA__CONNECTIONS: '6' },
    ...objects,
    ...rows((text) => sql.unsafe(text)),
    close: () => sql.close({ timeout: 0 }),
  }
}

function rows(ask: Ask): Pick<Damageable, 'keyOf' | 'listTrash' | 'keysOfUploads'> {
  return {
    async keyOf(digest) {
      const [row] = await ask(`SELECT storage_key FROM blobs WHERE digest = '${digest}'`)
      if (row === undefined) throw new Error(`no blob ${digest}`)
      return row.storage_key
    },
    async keysOfUploads() {
      const uploads = await ask(
        'SELECT storage_key, notes FROM uploads WHERE received_bytes > 0 AND done_digest IS NULL',
      )
      return uploads.flatMap(({ storage_key, notes }) =>
        typeof notes === 'string' ? parseNotes(notes).tails.map((tail) => tail.key) : [storage_key],
      )
    },
    listTrash: async () => (await ask('SELECT storage_key FROM trash')).map((row) => row.storage_key),
  }
}

async function objectsOf(
  { blobs }: StoreKind,
  dataDir: string,
): Promise<Objects & { readonly settings: Readonly<Record<string, string>> }> {
  if (blobs === 'files') return { settings: {}, ...fileObjects(join(dataDir, 'blobs')) }
  const [s3, prefix] = [await sharedS3(), freshPrefix()]
  return { settings: s3Variables(s3, prefix), ...s3Objects(s3, prefix) }
}

function fileObjects(root: string): Objects {
  const pathOf = (key: StorageKey) => join(root, key.slice(-2), key)
  return {
    async remove(key) {
      const bytes = readFileSync(pathOf(key))
      unlinkSync(pathOf(key))
      return async () => writeFileSync(pathOf(key), bytes)
    },
    cut: async (key) => truncateSync(pathOf(key), readFileSync(pathOf(key)).length - 1),
    async hide() {
      renameSync(root, `${root}-away`)
      return async () => renameSync(`${root}-away`, root)
    },
  }
}

function s3Objects(s3: S3Server, prefix: string): Objects {
  const ask = async (method: string, target: string, body?: Uint8Array<ArrayBuffer>) => {
    const answer = await askS3(s3, { method, target, ...(body && { body }) })
    if (!answer.ok) throw new Error(`${method} ${target}: ${answer.status}`)
    return answer.bytes()
  }
  const removeNamed = async (name: string) => {
    const bytes = await ask('GET', name)
    await ask('DELETE', name)
    return async () => {
      await ask('PUT', name, new Uint8Array(bytes))
    }
  }
  return {
    remove: (key) => removeNamed(toObjectName(prefix, key)),
    async cut(key) {
      const name = toObjectName(prefix, key)
      await ask('PUT', name, new Uint8Array((await ask('GET', name)).slice(0, -1)))
    },
    async hide(key) {
      const undo = [await removeNamed(`${prefix}owner`), await removeNamed(toObjectName(prefix, key))]
      return async () => {
        for (const each of undo) await each()
      }
    },
  }
}
