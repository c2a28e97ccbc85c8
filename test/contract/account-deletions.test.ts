// The deletion of an account removes every row of the account, and changes no row of another one.
import { describe, expect } from 'bun:test'
import type { Database } from '../../src/adapters/metadata-sql/database.ts'
import { SqlMetadataStore } from '../../src/adapters/metadata-sql/sql-metadata-store.ts'
import { removedTables } from '../../src/adapters/metadata-sql/tables/account-deletions.ts'
import { continueAccountDeletions, requestAccountDeletion } from '../../src/registry/account-deletion.ts'
import { useEngines } from '../support/stores/both-engines.ts'
import { fillRegistry } from '../support/stores/full-registry.ts'

const engines = useEngines('account-deletions')

const listColumns: Readonly<Record<Database['engine'], string>> = {
  sqlite: `SELECT t.name AS "table", c.name AS "column" FROM sqlite_master t JOIN pragma_table_info(t.name) c
           WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%'`,
  postgres: `SELECT table_name AS "table", column_name AS "column" FROM information_schema.columns
             WHERE table_schema = current_schema()`,
}

/** The tables with rows of accounts, by the column that tells the account. */
async function ownersOf(database: Database): Promise<ReadonlyMap<string, string>> {
  const rows = await database.all<{ table: string; column: string }>(listColumns[database.engine], [])
  const owners = rows.filter(
    ({ table, column }) => column === 'account_id' || (column === 'account' && table !== 'marks'),
  )
  return new Map(owners.map(({ table, column }) => [table, column]))
}

/** All rows of an account, by table. */
async function rowsOf(database: Database, id: number, name: string): Promise<Record<string, string[]>> {
  const found: Record<string, string[]> = {}
  for (const [table, column] of await ownersOf(database)) {
    const rows = await database.all(`SELECT * FROM ${table} WHERE ${column} = $1`, [column === 'account' ? name : id])
    if (rows.length > 0) found[table] = rows.map((row) => JSON.stringify(row)).sort()
  }
  return found
}

describe('the deletion of an account', () => {
  engines.each('knows every table with rows of accounts', async ({ place }) => {
    const database = (await place())()
    await SqlMetadataStore.open(database)

    expect([...(await ownersOf(database)).keys()].toSorted()).toEqual(removedTables.toSorted())
  })

  engines.each('leaves nothing of it, and every row of another account as it was', async ({ place }) => {
    const open = await place()
    const [metadata, database] = [await SqlMetadataStore.open(open()), open()]
    await fillRegistry(metadata)
    const [zeta, acme] = [await metadata.accounts.find('zeta'), await metadata.accounts.find('acme')]
    const [gone, kept] = [zeta?.id ?? 0, acme?.id ?? 0]
    const before = await rowsOf(database, kept, 'acme')
    const keys = await database.all<{ storage_key: string }>(
      'SELECT storage_key FROM blobs WHERE account_id = $1 AND content IS NULL',
      [gone],
    )
    const filled = Object.keys(await rowsOf(database, gone, 'zeta'))
    expect(filled.length).toBeGreaterThan(12)

    expect(await requestAccountDeletion({ metadata }, 'zeta', { hasUsers: true })).toBe('requested')
    expect(await continueAccountDeletions({ metadata }, 0)).toMatchObject({ accounts: 1 })

    expect(await rowsOf(database, gone, 'zeta')).toEqual({})
    expect(await rowsOf(database, kept, 'acme')).toEqual(before)
    expect(await metadata.users.find('bob')).toBeUndefined()
    const trashed = await database.all<{ storage_key: string }>('SELECT storage_key FROM trash', [])
    expect(keys.length).toBeGreaterThan(2)
    expect(
      new Set(trashed.map(({ storage_key }) => storage_key)).isSupersetOf(new Set(keys.map((row) => row.storage_key))),
    ).toBe(true)
  })
})
