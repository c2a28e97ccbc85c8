// Drops keys and indexes before loading, and creates the same ones afterwards. Their definitions come from the
// database.

interface Definition {
  readonly table: string
  readonly name: string
  readonly definition: string
}

export interface Definitions {
  readonly foreignKeys: readonly Definition[]
  readonly keys: readonly Definition[]
  readonly indexes: readonly Definition[]
}

const constraints = (kinds: string) => `
SELECT conrelid::regclass::text AS table, conname AS name, pg_get_constraintdef(oid) AS definition
FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND contype IN (${kinds}) ORDER BY 1, 2`

const indexes = `
SELECT indrelid::regclass::text AS table, indexrelid::regclass::text AS name, pg_get_indexdef(indexrelid) AS definition
FROM pg_index JOIN pg_class c ON c.oid = indexrelid
WHERE c.relnamespace = 'public'::regnamespace
  AND NOT EXISTS (SELECT 1 FROM pg_constraint WHERE conindid = indexrelid AND contype IN ('p', 'u')) ORDER BY 1, 2`

export async function readDefinitions(sql: Bun.SQL): Promise<Definitions> {
  const foreignKeys: Definition[] = [...(await sql.unsafe(constraints("'f'")))]
  const keys: Definition[] = [...(await sql.unsafe(constraints("'p', 'u'")))]
  const others: Definition[] = [...(await sql.unsafe(indexes))]
  return { foreignKeys, keys, indexes: others }
}

export async function dropAll(sql: Bun.SQL, { foreignKeys, keys, indexes }: Definitions): Promise<void> {
  for (const { table, name } of [...foreignKeys, ...keys]) {
    await sql.unsafe(`ALTER TABLE ${table} DROP CONSTRAINT IF EXISTS ${name} CASCADE`)
  }
  for (const { name } of indexes) await sql.unsafe(`DROP INDEX IF EXISTS ${name}`)
}

/** Foreign keys come last and are validated, so PostgreSQL itself searches for dangling references. */
export async function restoreAll(
  sql: Bun.SQL,
  { foreignKeys, keys, indexes }: Definitions,
  step: <T>(name: string, work: () => Promise<T>) => Promise<T>,
): Promise<void> {
  for (const { table, name, definition } of keys) {
    await step(name, () => sql.unsafe(`ALTER TABLE ${table} ADD CONSTRAINT ${name} ${definition}`))
  }
  for (const { name, definition } of indexes) await step(name, () => sql.unsafe(definition))
  for (const { table, name, definition } of foreignKeys) {
    await step(name, () => sql.unsafe(`ALTER TABLE ${table} ADD CONSTRAINT ${name} ${definition}`))
  }
}
