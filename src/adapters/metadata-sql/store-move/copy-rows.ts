import { hashHex } from '../../../lib/hashing.ts'
import { algorithmOf, parseDigest } from '../../../oci/digest.ts'
import type { Database, Queryable, Row, Value } from '../database.ts'
import { putIntoTrash } from '../tables/trash.ts'
import { type CopiedTable, copiedTables } from './copied-tables.ts'
import { readPages, toValue } from './read-pages.ts'

export interface RowMove {
  /** What stands in the mark `moved-from` afterwards. */
  readonly name: string
  /** The blob store is the same before and after: storage keys stay, and what is left lying there is taken along. */
  readonly keepsBlobStore: boolean
  /** Throws unless the source takes no changes for this very move, by the text of its mark `read-only` at that moment. */
  readonly checkStillOn?: (mark: string | undefined) => void
  /** So many more are in the target. */
  readonly onRows?: (rows: number) => void | Promise<void>
}

/** Rows by table. */
export type RowCounts = Readonly<Record<string, number>>

/**
 * All rows of one moment of the source, in one transaction of the target, which is checked before it ends: so many rows as
 * there, all bytes named, and each manifest what its digest says. Whatever goes wrong, the target is as it was.
 */
export function copyRows(source: Database, target: Database, move: RowMove): Promise<RowCounts> {
  return target.withMigrationLock(() =>
    source.snapshot((from) =>
      target.transaction(async (to) => {
        await checkStillOn(from, move)
        await requireEmpty(to)
        const counts = await copyTables(from, to, move)
        if (move.keepsBlobStore) await takeTrash(from, to)
        await settleCopiedObjects(to)
        // `move-from` stays: no server begins to work here before the other end has been told.
        await to.run("DELETE FROM marks WHERE name = 'moved-from'", [])
        await to.run("INSERT INTO marks (name, value) VALUES ('moved-from', $1)", [move.name])
        if (target.engine === 'postgres') await setSequences(to)
        await checkCounts(from, to, counts)
        await checkManifests(to)
        // A planner that knows nothing of so many new rows would read all of them.
        if (target.engine === 'postgres') await to.run(`ANALYZE ${copiedTables.map(({ name }) => name).join(', ')}`, [])
        return counts
      }),
    ),
  )
}

/** The tables that hold something of a registry. */
export async function listOccupied(queries: Queryable): Promise<readonly string[]> {
  const names = [...copiedTables.map(({ name }) => name), 'uploads']
  const found = await Promise.all(names.map((name) => queries.first(`SELECT 1 AS found FROM ${name} LIMIT 1`, [])))
  return names.filter((_, at) => found[at] !== undefined)
}

async function checkStillOn(from: Queryable, move: RowMove): Promise<void> {
  const mark = await from.first<{ value: string }>("SELECT value FROM marks WHERE name = 'read-only'", [])
  move.checkStillOn?.(mark?.value)
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
        table.columns.map((column) => (column === table.anew ? now : toValue(row[column]))),
      )
      await insert(to, table, rows)
      counts[table.name] = (counts[table.name] ?? 0) + rows.length
      await move.onRows?.(rows.length)
    }
  }
  return counts
}

/** Rows of blobs with the keys of their copies, which were verified on the way: none of them is damaged. */
async function toCopies(to: Queryable, blobs: readonly Row[]): Promise<readonly Row[]> {
  const copies = await to.all<{ source_key: string; storage_key: string; digest: string; size_bytes: number }>(
    'SELECT source_key, storage_key, digest, size_bytes FROM copied_objects WHERE source_key {in $1}',
    [JSON.stringify(blobs.map((row) => row['storage_key']))],
  )
  const byKey = new Map(copies.map((copy) => [copy.source_key, copy]))
  return blobs.map((row) => {
    const copy = byKey.get(String(row['storage_key']))
    if (copy === undefined || copy.digest !== row['digest'] || copy.size_bytes !== row['size_bytes']) {
      throw new Error(`the bytes of ${String(row['digest'])} have not been copied`)
    }
    return { ...row, storage_key: copy.storage_key, damaged_at: null }
  })
}

/** So that there are few statements to prepare, whatever the number of rows. */
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

/** Where the blob store stays: what the old metadata would have removed from it one day, the new has to. */
async function takeTrash(from: Queryable, to: Queryable): Promise<void> {
  for (const name of ['trash', 'uploads']) {
    const table = { name, columns: ['storage_key', 'notes'], key: ['storage_key'] }
    for await (const page of readPages(from, table)) {
      for (const { storage_key, notes } of page) {
        await putIntoTrash(to, String(storage_key), typeof notes === 'string' ? notes : null)
      }
    }
  }
}

/** Copies whose blobs were collected meanwhile are nobody's; the others are named by their rows from now on. */
async function settleCopiedObjects(to: Queryable): Promise<void> {
  await to.run(
    `INSERT INTO trash (storage_key, notes, trashed_at) SELECT c.storage_key, NULL, {now} FROM copied_objects c
     WHERE NOT EXISTS (SELECT 1 FROM blobs b WHERE b.storage_key = c.storage_key)`,
    [],
  )
  await to.run('DELETE FROM copied_objects', [])
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
    const [there, here] = [await countRows(from, name), await countRows(to, name)]
    if (there !== here || here !== copied[name]) {
      throw new Error(`of ${there} rows of ${name}, ${copied[name]} were copied and ${here} are in the target`)
    }
  }
}

async function countRows(queries: Queryable, table: string): Promise<number> {
  return (await queries.first<{ rows: number }>(`SELECT count(*) AS rows FROM ${table}`, []))?.rows ?? 0
}

const digestAndPayload = ['id', 'digest', 'size_bytes', 'payload']

async function checkManifests(to: Queryable): Promise<void> {
  const table = copiedTables.find(({ name }) => name === 'manifests')
  if (table === undefined) throw new Error('manifests are not copied')
  for await (const page of readPages(to, { ...table, columns: digestAndPayload })) {
    for (const { digest: text, payload } of page) {
      const digest = parseDigest(String(text))
      const algorithm = algorithmOf(digest)
      const actual = payload instanceof Uint8Array ? `${algorithm}:${hashHex(algorithm, payload)}` : 'nothing'
      if (actual !== digest) throw new Error(`the manifest ${digest} is damaged: its bytes are those of ${actual}`)
    }
  }
}
