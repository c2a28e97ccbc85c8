// How SQLite finds the rows of every statement of the metadata store. SQLite has no statistics here, so a plan follows from the
// statement and the indexes alone, and holds for every registry. (PostgreSQL's plans depend on the rows: see bench/scale.)
import { describe, expect, test } from 'bun:test'
import type { Database, Queryable } from '../../src/adapters/metadata-sql/database.ts'
import { migrate } from '../../src/adapters/metadata-sql/migrate.ts'
import type { SqlMetadataStore } from '../../src/adapters/metadata-sql/sql-metadata-store.ts'
import { addCopies, fillRegistry } from '../support/stores/full-registry.ts'
import type { NamedStatements } from '../support/stores/named-statements.ts'
import { sqlitePlans, sqlitePlansThatGrow } from './sqlite-plans-table.ts'

/** No look into a table: a list that the statement was given, a row of constants, a part of the plan that has a line of its own. */
const noTable = /VIRTUAL TABLE INDEX|CONSTANT ROW|VALUES CLAUSE|^(?!SCAN|SEARCH|USE TEMP B-TREE)/

/** `SEARCH u USING INDEX uploads_by_repository (account_id=? AND touched_at<?)` -> `uploads_by_repository: account_id touched_at<` */
function shorten(detail: string): string[] {
  if (noTable.test(detail)) return []
  const [, alias, index, terms = ''] =
    /^SEARCH (\w+) USING (?:COVERING )?(?:INDEX (\w+)|INTEGER PRIMARY KEY) \((.*)\)/.exec(detail) ?? []
  if (alias === undefined) return [detail.replace(' USING COVERING INDEX ', ' BY ').replace(' USING INDEX ', ' BY ')]
  const columns = terms.replaceAll(' AND ', ' ').replaceAll('=?', '').replaceAll('?', '')
  return [`${index?.replace(/^sqlite_autoindex_(\w+)_\d+$/, '$1') ?? alias}: ${columns}`]
}

async function planOf(queries: Queryable, sql: string): Promise<string[]> {
  const numbers = [...sql.matchAll(/\$(\d+)/g)].map(([, number]) => Number(number))
  const values = Array.from({ length: Math.max(0, ...numbers) }, () => null)
  const rows = await queries.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`, values)
  return rows.flatMap(({ detail }) => shorten(detail))
}

/** It reads more, the more there is: a table or index from its beginning, or all that an account has. */
function grows(plan: readonly string[]): boolean {
  return plan.some((step) => /^SCAN \w+( BY|$)|TEMP B-TREE|: account_id$/.test(step))
}

function findFaults(name: string, sql: string, plan: readonly string[]): string[] {
  if (name.startsWith('takeRowsOf: ')) {
    return sql.includes('LIMIT $') && (plan.length !== 1 || grows(plan)) ? [`${name}: ${plan.join('; ')}`] : []
  }
  const faults = []
  if (plan.join() !== (sqlitePlans[name] ?? []).join()) faults.push(`  '${name}': ${JSON.stringify(plan)},`)
  if (grows(plan) && sqlitePlansThatGrow[name] === undefined) faults.push(`  '${name}': grows, and has no reason`)
  return faults
}

const advice = `
The plan of a statement is not the one in test/contract/sqlite-plans-table.ts.
- A new statement: look at the plan above. If each step finds its rows by a whole key, or by a range that the answer needs, add the line.
- A changed plan: is the new one as good? If it binds fewer columns, change the statement or add an index (a migration).
- "was never asked": the statement is gone (remove its line), or no contract test asks it any more (write one), or only some
  tests of the file ran (-t).
- A step that starts with SCAN or USE TEMP B-TREE, or binds the account alone, needs a reason in \`sqlitePlansThatGrow\`.`

export function sqlitePlansContract(
  open: () => Promise<SqlMetadataStore>,
  statements: NamedStatements,
  openBare: () => Database,
): void {
  describe('metadata store, SQLite: plans', () => {
    test('every statement finds its rows as the table of plans says', async () => {
      await moveEverything(open)
      const database = openBare()
      await migrate(database)
      const named = [...statements.list(new Set(Object.keys(sqlitePlans)))]
      // On a connection of its own: Bun leaves an EXPLAIN under way, and nothing can be committed beside it.
      const plans = await database.snapshot((queries) => Promise.all(named.map(([, sql]) => planOf(queries, sql))))
      await database.close()
      const faults = named.flatMap(([name, sql], at) => findFaults(name, sql, plans[at] ?? []))
      const asked = new Set(named.map(([name]) => name))
      faults.push(...Object.keys(sqlitePlans).flatMap((name) => (asked.has(name) ? [] : `${name}: was never asked`)))

      expect(faults.length === 0 ? '' : `${faults.join('\n')}\n${advice}`).toBe('')
    })

    test('the check sees a table that is read from its beginning, and an index of which only the account is bound (control)', () => {
      const plans = [
        ['SCAN uploads'],
        ['SCAN u BY uploads_by_age'],
        ['blobs: account_id'],
        ['USE TEMP B-TREE FOR ORDER BY'],
      ]
      expect(plans.map(grows)).toEqual(plans.map(() => true))
      expect(grows(['blobs: account_id digest'])).toBe(false)
    })
  })
}

/** A move reads and writes all rows by design, so its statements are no part of the table; its pages must be found by key. */
async function moveEverything(open: () => Promise<SqlMetadataStore>): Promise<void> {
  const [source, target] = [await open(), await open()]
  await fillRegistry(source)
  const copies = await addCopies(source, target)
  await target.copiedObjects().list([...copies.keys()] as never)
  await target.takeRowsOf(source, { id: 'move', keepsBlobStore: true })
}
