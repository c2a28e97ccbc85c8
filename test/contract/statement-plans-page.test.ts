import { expect, test } from 'bun:test'
import { testNeeding } from '../support/basics/needs.ts'
import { readProjectFile } from '../support/house/source-text.ts'
import { postgres } from '../support/postgres/postgres-server.ts'
import { newMigratedDatabase } from '../support/stores/test-stores.ts'

const page = readProjectFile('docs/design/statement-plans.md') ?? ''
const cells = page.split('\n').flatMap((line) => /^\| [a-zA-Z]+\.[^|]*\|([^|]*)\|/.exec(line)?.[1] ?? [])
const named = new Set(
  cells.flatMap((cell) => [...cell.matchAll(/`(?:all of )?(\w+)`/g)].map((match) => match[1] ?? '')),
)

test('the page of statement plans names indexes', () => expect(named.size).toBeGreaterThan(30))

testNeeding(postgres, 'every index and table on the page of statement plans exists in the newest schema', async () => {
  await using sql = new Bun.SQL(await newMigratedDatabase(), { max: 1 })
  const rows: { name: string }[] = await sql`SELECT relname AS name FROM pg_class WHERE relkind IN ('i', 'r')`
  const existing = new Set(rows.map(({ name }) => name))
  expect([...named].filter((name) => !existing.has(name))).toEqual([])
  expect(existing.has('uploads_of_repository')).toBe(false)
})
