// Copies the generated rows to a SQLite database without changes, so that both engines are measured with the same keys.
import { Database as Sqlite } from 'bun:sqlite'
import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { migrate } from '../../src/adapters/metadata-sql/migrate.ts'
import { SqliteDatabase } from '../../src/adapters/metadata-sql/sqlite-database.ts'
import { copiedTables } from '../../src/adapters/metadata-sql/store-move/copied-tables.ts'
import { databaseOf } from './generate.ts'
import type { ScaleServer } from './server.ts'

const rowsAtOnce = 5_000

export const sqliteFileOf = (folder: string, size: number) => join(folder, `${databaseOf(size)}.sqlite`)

export async function copyToSqlite(server: ScaleServer, folder: string, size: number): Promise<void> {
  const file = sqliteFileOf(folder, size)
  for (const end of ['', '-wal', '-shm']) if (existsSync(file + end)) rmSync(file + end)
  const empty = new SqliteDatabase(file)
  await migrate(empty)
  await empty.close()
  const source = new Bun.SQL({ url: server.urlOf(databaseOf(size)), max: 1, idleTimeout: 0, bigint: true })
  const target = new Sqlite(file)
  // The rows of the source are checked. A copy that was interrupted is created again.
  for (const setting of ['synchronous = OFF', 'foreign_keys = OFF', 'cache_size = -1000000'])
    target.run(`PRAGMA ${setting}`)
  const names = [...copiedTables.map(({ name }) => name), 'uploads', 'trash']
  for (const name of names) await copyTable(source, target, name)
  await source.close()
  target.close()
}

/**
 * Reads with a cursor, in the order of the source, in which the rows of a repository are scattered as after real
 * pushes.
 */
async function copyTable(source: Bun.SQL, target: Sqlite, name: string): Promise<void> {
  await source.unsafe(`BEGIN; DECLARE all_rows NO SCROLL CURSOR FOR SELECT * FROM ${name}`)
  target.run('BEGIN')
  let count = 0
  for (;;) {
    const rows: Record<string, unknown>[] = await source.unsafe(`FETCH ${rowsAtOnce} FROM all_rows`)
    if (rows.length === 0) break
    const columns = Object.keys(rows[0] ?? {})
    const statement = target.query(
      `INSERT INTO ${name} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`,
    )
    for (const row of rows) statement.run(...columns.map((column) => toValue(row[column])))
    count += rows.length
  }
  target.run('COMMIT')
  await source.unsafe('COMMIT')
  console.log(`${String(count).padStart(10)}  ${name}`)
}

function toValue(value: unknown): string | number | Uint8Array | null {
  if (typeof value === 'bigint') return Number(value)
  if (value === null || typeof value === 'string' || typeof value === 'number' || value instanceof Uint8Array)
    return value
  throw new Error(`a row holds a ${typeof value}`)
}
