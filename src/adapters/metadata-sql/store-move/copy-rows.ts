import { hashHex } from '../../../lib/hashing.ts'
import { algorithmOf, parseDigest } from '../../../oci/digest.ts'
import type { Database, Queryable, Row, Value } from '../database.ts'
import { refuseCodeWithoutInlineBlobs } from '../migrate.ts'
import { putIntoTrash } from '../tables/trash.ts'
import { type CopiedTable, copiedTables } from './copied-tables.ts'

export interface RowMove {
  /** The id of the move. It becomes the target's mark `moved-from`. */
  readonly id: string
  /** Both ends use one blob store. Storage keys stay, and the target takes over what the source has to remove. */
  readonly keepsBlobStore: boolean
  /** Throws unless this text, the source's mark `read-only` in the snapshot, is that of the move. */
  readonly checkStarted?: (mark: string | undefined) => void
  /** So many more rows are in the target. */
  readonly onRows?: (rows: number) => void | Promise<void>
}

/** Rows by table. */
export type RowCounts = Readonly<Record<string, number>>

/**
 * Copies all rows of one snapshot of the source in one transaction of the target. Before the transaction commits, it checks
 * that the target has as many rows as the source, that every blob was copied, and that every manifest and inline blob has its
 * digest. After an error the target is unchanged.
 */
export function copyRows(source: Database, target: Database, move: RowMove): Promise<RowCounts> {
  return target.withMigrationLock(() =>
    source.snapshot((from) =>
      target.transaction(async (to) => {
        await checkStarted(from, move)
        await requireEmpty(to)
        const counts = await copyTables(from, to, move)
        if (move.keepsBlobStore) await takeOverTrash(from, to)
        await dropCopiedObjects(to)
        await refuseOlderServers(to)
        await to.run("INSERT INTO marks (name, value) VALUES ('moved-from', $1)", [move.id])
        if (target.engine === 'postgres') await setSequences(to)
        await checkCounts(from, to, counts)
        await checkBytes(to, 'manifests', 'payload')
        await checkBytes(to, 'deleted_manifests', 'payload')
        await checkBytes(to, 'blobs', 'content')
        // Without statistics about so many new rows, the planner would choose full scans.
        if (target.engine === 'postgres') await to.run(`ANALYZE ${copiedTables.map(({ name }) => name).join(', ')}`, [])
        return counts
      }),
    ),
  )
}

/** The tables that hold rows of a registry. */
export async function listOccupied(queries: Queryable): Promise<readonly string[]> {
  const names = [...copiedTables.map(({ name }) => name), 'uploads']
  const found = await Promise.all(names.map((name) => queries.first(`SELECT 1 AS found FROM ${name} LIMIT 1`, [])))
  return names.filter((_, at) => found[at] !== undefined)
}

async function checkStarted(from: Queryable, move: RowMove): Promise<void> {
  const mark = await from.first<{ value: string }>("SELECT value FROM marks WHERE name = 'read-only'", [])
  move.checkStarted?.(mark?.value)
}

async function requireEmpty(to: Queryable): Promise<void> {
  const occupied = await listOccupied(to)
  if (occupied.length > 0) throw new Error(`the target is not empty: it has ${occupied.join(', ')}`)
}

async function copyTables(from: Queryable, to: Queryable, move: RowMove): Promise<RowCounts> {
  const now = (await to.first<{ now: number }>('SELECT {now} AS now', []))?.now ?? 0
  const counts: Record<string, number> = {}
  for (const table of copiedTables) {
    counts[table.name] = 0
    for await (const page of readPages(from, table)) {
      const changed = table.name === 'blobs' && !move.keepsBlobStore ? await toCopies(to, page) : page
      const rows = changed.map((row) =>
        table.columns.map((column) => (column === table.resetTime ? now : toValue(row[column]))),
      )
      await insert(to, table, rows)
      counts[table.name] = (counts[table.name] ?? 0) + rows.length
      await move.onRows?.(rows.length)
    }
  }
  return counts
}

/** Replaces the storage keys by those of the copies. The copies were verified, so none of them is damaged. Inline blobs stay. */
async function toCopies(to: Queryable, blobs: readonly Row[]): Promise<readonly Row[]> {
  const copies = await to.all<{ source_key: string; storage_key: string; digest: string; size_bytes: number }>(
    'SELECT source_key, storage_key, digest, size_bytes FROM copied_objects WHERE source_key {in $1}',
    [JSON.stringify(blobs.map((row) => row['storage_key']))],
  )
  const byKey = new Map(copies.map((copy) => [copy.source_key, copy]))
  return blobs.map((row) => {
    if (row['content'] !== null) return row
    const copy = byKey.get(String(row['storage_key']))
    if (copy === undefined || copy.digest !== row['digest'] || copy.size_bytes !== row['size_bytes']) {
      throw new Error(`the bytes of ${String(row['digest'])} have not been copied`)
    }
    return { ...row, storage_key: copy.storage_key, damaged_at: null }
  })
}

/** Rows per statement: a few fixed sizes, so that few statements are prepared. */
const groupSizes = [128, 64, 32, 16, 8, 4, 2, 1]

async function insert(to: Queryable, table: CopiedTable, rows: readonly (readonly Value[])[]): Promise<void> {
  let at = 0
  for (const size of groupSizes) {
    for (; rows.length - at >= size; at += size) {
      await to.run(insertStatement(table, size), rows.slice(at, at + size).flat())
    }
  }
}

function insertStatement({ name, columns }: CopiedTable, rows: number): string {
  const width = columns.length
  const groups = Array.from({ length: rows }, (_, row) => {
    const places = columns.map((_, column) => `$${row * width + column + 1}`)
    return `(${places.join(', ')})`
  })
  return `INSERT INTO ${name} (${columns.join(', ')}) VALUES ${groups.join(', ')}`
}

/** The target has to remove the objects that the source would have removed. */
async function takeOverTrash(from: Queryable, to: Queryable): Promise<void> {
  for (const name of ['trash', 'uploads']) {
    const table = { name, columns: ['storage_key', 'notes'], key: ['storage_key'] }
    for await (const page of readPages(from, table)) {
      for (const { storage_key, notes } of page) {
        await putIntoTrash(to, String(storage_key), typeof notes === 'string' ? notes : null)
      }
    }
  }
}

/** A copy whose blob was collected at the source goes into the trash. Rows of `blobs` name the others from now on. */
async function dropCopiedObjects(to: Queryable): Promise<void> {
  await to.run(
    `INSERT INTO trash (storage_key, notes, trashed_at) SELECT c.storage_key, NULL, {now} FROM copied_objects c
     WHERE NOT EXISTS (SELECT 1 FROM blobs b WHERE b.storage_key = c.storage_key)`,
    [],
  )
  await to.run('DELETE FROM copied_objects', [])
}

/** Servers that cannot read inline blobs do not start on the target if there are any. */
async function refuseOlderServers(to: Queryable): Promise<void> {
  const inline = await to.first('SELECT 1 AS found FROM blobs WHERE content IS NOT NULL LIMIT 1', [])
  if (inline !== undefined) await refuseCodeWithoutInlineBlobs(to)
}

async function setSequences(to: Queryable): Promise<void> {
  for (const { name, isNumbered } of copiedTables) {
    if (!isNumbered) continue
    await to.first(
      `SELECT setval(pg_get_serial_sequence('${name}', 'id'), (SELECT coalesce(max(id), 0) + 1 FROM ${name}), false)`,
      [],
    )
  }
}

async function checkCounts(from: Queryable, to: Queryable, copied: RowCounts): Promise<void> {
  for (const { name } of copiedTables) {
    const [atSource, atTarget] = [await countRows(from, name), await countRows(to, name)]
    if (atSource !== atTarget || atTarget !== copied[name]) {
      throw new Error(`of ${atSource} rows of ${name}, ${copied[name]} were copied and ${atTarget} are in the target`)
    }
  }
}

async function countRows(queries: Queryable, table: string): Promise<number> {
  return (await queries.first<{ rows: number }>(`SELECT count(*) AS rows FROM ${table}`, []))?.rows ?? 0
}

/** Throws unless the bytes in this column have the digest of their row. */
async function checkBytes(
  to: Queryable,
  name: 'manifests' | 'deleted_manifests' | 'blobs',
  column: 'payload' | 'content',
): Promise<void> {
  const table = copiedTables.find((copied) => copied.name === name)
  if (table === undefined) throw new Error(`${name} are not copied`)
  for await (const page of readPages(to, { ...table, columns: ['id', 'digest', column] })) {
    for (const { digest: text, [column]: bytes } of page) {
      // The bytes of other blobs are objects, which were verified when they were copied.
      if (column === 'content' && bytes === null) continue
      const digest = parseDigest(String(text))
      const algorithm = algorithmOf(digest)
      const actual = bytes instanceof Uint8Array ? `${algorithm}:${hashHex(algorithm, bytes)}` : 'nothing'
      const kind = name === 'blobs' ? 'blob' : 'manifest'
      if (actual !== digest) throw new Error(`the ${kind} ${digest} is damaged: its bytes are those of ${actual}`)
    }
  }
}

const rowsMax = 500
const bytesMax = 16 * 1024 * 1024

/** Reads the rows of a table in the order of its key. Memory holds one page, whose size is limited. */
export async function* readPages(queries: Queryable, table: CopiedTable): AsyncGenerator<readonly Row[]> {
  let after: readonly Value[] = table.key.map((column) => (textColumns.has(column) ? '' : -1))
  for (;;) {
    const limit = await findLimit(queries, table, after)
    const rows = limit === 0 ? [] : await queries.all(readStatement(table, table.columns), [...after, limit])
    const last = rows.at(-1)
    if (last === undefined) return
    yield rows
    after = table.key.map((column) => toValue(last[column]))
  }
}

/** Key columns that hold text; the others hold numbers. */
const textColumns: ReadonlySet<string> = new Set(['name', 'tag', 'kind', 'digest', 'storage_key', 'repository'])

/** The number of rows in the next page: at least one, however long it is. */
async function findLimit(queries: Queryable, table: CopiedTable, after: readonly Value[]): Promise<number> {
  const { weight } = table
  if (weight === undefined) return rowsMax
  const rows = await queries.all<Row>(readStatement(table, [`${weight} AS weight`]), [...after, rowsMax])
  let bytes = 0
  const tooMany = rows.findIndex((row, at) => {
    bytes += Number(row['weight'])
    return at > 0 && bytes > bytesMax
  })
  return tooMany === -1 ? rows.length : tooMany
}

function readStatement({ name, key }: CopiedTable, columns: readonly string[]): string {
  const keys = key.join(', ')
  const places = key.map((_, at) => `$${at + 1}`).join(', ')
  return `SELECT ${columns.join(', ')} FROM ${name} WHERE (${keys}) > (${places}) ORDER BY ${keys} LIMIT $${key.length + 1}`
}

/** A value that was read, as a value that can be written. */
export function toValue(given: unknown): Value {
  if (given === null || typeof given === 'string' || typeof given === 'number') return given
  if (given instanceof Uint8Array) return given
  throw new Error(`a row holds a ${typeof given}`)
}
