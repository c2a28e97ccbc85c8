import type { Queryable, Row, Value } from '../database.ts'
import type { CopiedTable } from './copied-tables.ts'

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
const textColumns: ReadonlySet<string> = new Set(['name', 'digest', 'storage_key'])

/** The number of rows in the next page: at least one, however long it is. */
async function findLimit(queries: Queryable, table: CopiedTable, after: readonly Value[]): Promise<number> {
  const { weight } = table
  if (weight === undefined) return rowsMax
  const rows = await queries.all<Row>(readStatement(table, [weight]), [...after, rowsMax])
  let bytes = 0
  const tooMany = rows.findIndex((row, at) => {
    bytes += Number(row[weight])
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
