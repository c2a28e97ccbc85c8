// The list of tables that a move copies, compared with the schema: a new column or table must be added to the list.
import { describe, expect, test } from 'bun:test'
import type { Database } from '../../src/adapters/metadata-sql/database.ts'
import { migrate } from '../../src/adapters/metadata-sql/migrate.ts'
import { copiedTables, otherTables } from '../../src/adapters/metadata-sql/store-move/copied-tables.ts'
import { useEngines } from '../support/stores/both-engines.ts'

const engines = useEngines('copied-tables')

interface Column {
  readonly table: string
  readonly column: string
}

const queries: Readonly<Record<Database['engine'], string>> = {
  sqlite: `SELECT t.name AS "table", c.name AS "column" FROM sqlite_master t JOIN pragma_table_info(t.name) c
           WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%'`,
  postgres: `SELECT table_name AS "table", column_name AS "column" FROM information_schema.columns
             WHERE table_schema = current_schema()`,
}

async function schemaOf(database: Database): Promise<ReadonlyMap<string, readonly string[]>> {
  const columns = await database.all<Column>(queries[database.engine], [])
  const byTable = Map.groupBy(columns, ({ table }) => table)
  return new Map([...byTable].map(([table, its]) => [table, its.map(({ column }) => column).sort()]))
}

describe('the tables that a move copies', () => {
  engines.each('are all tables except those with a reason, each with all columns', async ({ place }) => {
    const database = (await place())()
    await migrate(database)
    const schema = await schemaOf(database)

    const listed = [...copiedTables.map(({ name }) => name), ...Object.keys(otherTables)]
    expect(listed.toSorted()).toEqual([...schema.keys()].toSorted())
    for (const { name, columns } of copiedTables) {
      expect([name, columns.toSorted()]).toEqual([name, [...(schema.get(name) ?? [])]])
    }
  })

  engines.each('would lack a new table and a new column (control)', async ({ place }) => {
    const database = (await place())()
    await migrate(database)
    await database.run('CREATE TABLE extra (id {id})', [])
    await database.run('ALTER TABLE tags ADD COLUMN extra {number}', [])
    const schema = await schemaOf(database)

    expect(schema.get('extra')).toEqual(['id'])
    expect(schema.get('tags')).toContain('extra')
    expect(copiedTables.find(({ name }) => name === 'tags')?.columns).not.toContain('extra')
  })

  test('have the columns that their entries name', () => {
    for (const { columns, key, resetTime = key[0] } of copiedTables) {
      for (const column of [...key, resetTime]) expect(columns).toContain(String(column))
    }
  })
})
