// Runs `berth migrate-store` as an operator does, between stores that it creates.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Database } from '../../../src/adapters/metadata-sql/database.ts'
import { PostgresDatabase } from '../../../src/adapters/metadata-sql/postgres-database.ts'
import { SqliteDatabase } from '../../../src/adapters/metadata-sql/sqlite-database.ts'
import { freshPrefix, sharedS3 } from '../s3/test-s3.ts'
import { type CommandRun, runBerth, startCommand } from '../server/berth-command.ts'
import { limits, s3Variables, sharedPostgres } from '../stores/test-stores.ts'

/** A pair of stores, by the settings of a server on them. */
export interface Place {
  readonly settings: Readonly<Record<string, string>>
  readonly dataDir: string
  /** Opens the database, past any port. */
  look(): Database
}

/** SQLite and files. */
export function placeIn(dataDir: string): Place {
  return {
    dataDir,
    settings: { BERTH_DATA_DIR: dataDir },
    look: () => new SqliteDatabase(join(dataDir, 'metadata.sqlite')),
  }
}

/** PostgreSQL, and files in the folder or S3. */
export async function placeOnServers(dataDir: string, blobs: 'files' | 's3'): Promise<Place> {
  const url = await (await sharedPostgres()).newDatabase()
  const bucket = blobs === 's3' ? s3Variables(await sharedS3(), freshPrefix()) : {}
  return {
    dataDir,
    settings: { BERTH_DATA_DIR: dataDir, BERTH_METADATA__URL: url, BERTH_METADATA__CONNECTIONS: '6', ...bucket },
    look: () => new PostgresDatabase({ ...limits, url }),
  }
}

function environmentOf(from: Place, to: Place | undefined): Record<string, string> {
  const others = Object.entries(to?.settings ?? {})
  return { ...from.settings, ...Object.fromEntries(others.map(([name, value]) => [toTarget(name), value])) }
}

function toTarget(variable: string): string {
  return variable.replace(/^BERTH_/, 'BERTH_TO_')
}

/** All settings are in the environment. The settings file of the target must exist, and may be empty. */
function argumentsFor(from: Place, to: Place | undefined, more: readonly string[]): string[] {
  if (to === undefined) return ['migrate-store', ...more]
  const file = join(from.dataDir, 'target.yaml')
  writeFileSync(file, '')
  return ['migrate-store', '--to', file, ...more]
}

/** What runs the command: in this process with `runBerthHere`, or in its own with `runBerth`. */
export function moveCommand(from: Place, to: Place | undefined, ...more: readonly string[]) {
  return [argumentsFor(from, to, more), environmentOf(from, to), from.dataDir] as const
}

export function runMove(from: Place, to: Place | undefined, ...more: readonly string[]): Promise<CommandRun> {
  return runBerth(...moveCommand(from, to, ...more))
}

/** Kills the command as soon as `isTime`. Gives its exit code if it ends before that. */
export async function killMove(
  from: Place,
  to: Place,
  isTime: () => Promise<boolean>,
  ...more: readonly string[]
): Promise<number | 'killed'> {
  const child = startCommand(argumentsFor(from, to, more), environmentOf(from, to), from.dataDir)
  while (child.exitCode === null && !(await isTime())) await Bun.sleep(2)
  child.kill('SIGKILL')
  await child.exited
  return child.exitCode ?? 'killed'
}

export async function readAllRows<R extends object>(place: Place, sql: string): Promise<readonly R[]> {
  const database = place.look()
  try {
    return await database.all<R>(sql, [])
  } finally {
    await database.close()
  }
}
