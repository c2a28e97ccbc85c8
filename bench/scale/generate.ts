// Fills a database that the migrations created, so the generated rows satisfy the keys that a server relies on.

import { migrate } from '../../src/adapters/metadata-sql/migrate.ts'
import { PostgresDatabase } from '../../src/adapters/metadata-sql/postgres-database.ts'
import { dropAll, readDefinitions, restoreAll } from './bare-tables.ts'
import { fill, scaffold } from './content.ts'
import { checkSoundness } from './data-checks.ts'
import { shapeOf } from './registry-shape.ts'
import type { ScaleServer } from './server.ts'

export const databaseOf = (size: number) => `scale_${size}`

export async function openDatabase(url: string, connectionsMax = 2): Promise<PostgresDatabase> {
  const [statementTimeoutMs, lockTimeoutMs] = [600_000, 60_000]
  const database = new PostgresDatabase({ url, connectionsMax, queueMax: 10_000, statementTimeoutMs, lockTimeoutMs })
  await migrate(database)
  return database
}

export async function generate(server: ScaleServer, size: number): Promise<void> {
  const admin = new Bun.SQL({ url: server.urlOf('postgres'), max: 1 })
  await admin.unsafe(`DROP DATABASE IF EXISTS ${databaseOf(size)}`)
  await admin.unsafe(`CREATE DATABASE ${databaseOf(size)}`)
  await admin.close()
  const url = server.urlOf(databaseOf(size))
  await (await openDatabase(url)).close()
  const sql = new Bun.SQL({ url, max: 1, idleTimeout: 0 })
  try {
    await load(sql, size)
    await checkSoundness(sql, size)
  } finally {
    await sql.close()
  }
}

async function load(sql: Bun.SQL, size: number): Promise<void> {
  const shape = shapeOf(size)
  const before = await readDefinitions(sql)
  await sql.unsafe("SET work_mem = '768MB'")
  await sql.unsafe("SET maintenance_work_mem = '1500MB'")
  for (const [name, text] of scaffold(shape)) await timed(name, () => sql.unsafe(text))
  const [pool] = await sql.unsafe('SELECT sum(pool)::int8 AS layers FROM scale.accounts')
  await dropAll(sql, before)
  for (const [table, text] of fill(shape, Number(pool.layers))) {
    // The table is emptied in the same transaction: a failure leaves no rows, and PostgreSQL need not log the new rows.
    const truncate = table.includes('.') ? '' : `TRUNCATE ${table};`
    await timed(table, () => sql.unsafe(`BEGIN; ${truncate} ${text}; COMMIT`))
  }
  await sql.unsafe('DROP SCHEMA scale CASCADE')
  await restoreAll(sql, before, timed)
  const after = await readDefinitions(sql)
  if (JSON.stringify(after) !== JSON.stringify(before)) throw new Error('a key or an index was not brought back')
  for (const table of ['accounts', 'repositories', 'blobs', 'manifests', 'users', 'api_keys']) {
    await sql.unsafe(`SELECT setval(pg_get_serial_sequence('${table}', 'id'), (SELECT max(id) FROM ${table}))`)
  }
  await timed('vacuum and analyze', () => sql.unsafe('VACUUM (ANALYZE)'))
}

async function timed<T>(name: string, work: () => Promise<T>): Promise<T> {
  const startedAt = performance.now()
  const result = await work()
  console.log(`${((performance.now() - startedAt) / 1000).toFixed(1).padStart(8)} s  ${name}`)
  return result
}
