import type { Database } from './database.ts'
import { initial } from './migrations/0001-initial.ts'
import { keysWithLimits } from './migrations/0002-keys-with-limits.ts'

/** In order; a migration that has been released is never changed, only followed. */
const migrations: readonly { readonly version: number; readonly sql: string }[] = [
  { version: 1, sql: initial },
  { version: 2, sql: keysWithLimits },
]

/** Brings the schema up to date, one transaction a step. Gives the versions that it applied. */
export function migrate(database: Database): Promise<number[]> {
  return database.alone(() => applyMissing(database))
}

async function applyMissing(database: Database): Promise<number[]> {
  await database.script(
    'CREATE TABLE IF NOT EXISTS schema_versions (version {number} PRIMARY KEY, applied_at {number} NOT NULL)',
  )
  const applied: number[] = []
  for (const { version, sql } of migrations) {
    if (await applyOnce(database, version, sql)) applied.push(version)
  }
  return applied
}

async function applyOnce(database: Database, version: number, sql: string): Promise<boolean> {
  return database.transaction(async (queries) => {
    const known = await queries.first('SELECT version FROM schema_versions WHERE version = $1', [version])
    if (known !== undefined) return false
    for (const statement of sql.split(';')) {
      if (statement.trim() !== '') await queries.run(statement, [])
    }
    await queries.run('INSERT INTO schema_versions (version, applied_at) VALUES ($1, {now})', [version])
    return true
  })
}
