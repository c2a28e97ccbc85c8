import { existsSync } from 'node:fs'
import { access, constants, mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Database } from '../adapters/metadata-sql/database.ts'
import { listMissing } from '../adapters/metadata-sql/migrate.ts'
import { ServerLockTaken, SqliteServerLock } from '../adapters/metadata-sql/sqlite-server-lock.ts'
import { syncFolder } from '../lib/durable-files.ts'
import type { Config } from './settings.ts'
import { describeDataFault } from './start-errors.ts'

// The folder `data_dir`: how it is created, and which process may use it.

export type ServerLock = SqliteServerLock

/** Whether the folder holds data of the registry. Then only one server may use it. */
export function usesDataDir({ databaseUrl, bucket }: Config): boolean {
  return databaseUrl === undefined || bucket === undefined
}

/** Creates the folder if it is missing. Fails if it cannot be used, before anything in it is changed. */
export async function createDataDir(config: Config): Promise<void> {
  if (!usesDataDir(config)) return
  const { dataDir } = config
  try {
    const created = await mkdir(dataDir, { recursive: true, mode: 0o700 })
    if (created !== undefined) await syncFolder(dirname(created))
    for (const path of ['.', ...contents].map((name) => join(dataDir, name))) {
      if (existsSync(path)) await access(path, constants.R_OK | constants.W_OK)
    }
  } catch (error) {
    throw describeDataFault(error, config)
  }
}

/** What Berth creates there. */
const contents = ['metadata.sqlite', 'server.lock', 'workers.lock', 'blobs', 'identity']

/** A server holds this lock from before it opens the stores until it has closed them. Undefined if servers share all data. */
export function lockForServer(config: Config): SqliteServerLock | undefined {
  if (!usesDataDir(config)) return undefined
  return lock(
    config,
    `another Berth is serving this data folder, ${config.dataDir}: stop that server, or set data_dir to another folder`,
  )
}

/** A worker holds this lock while it uses the data folder. The supervisor holds the lock of the server. */
export function lockForWorker(config: Config): SqliteServerLock | undefined {
  return usesDataDir(config) ? new SqliteServerLock(workersLock(config), { isShared: true }) : undefined
}

/** A worker whose supervisor was killed ends by itself, but possibly not at once: its last write may still be running. */
const workersEndWithinMs = 10_000

function waitForFormerWorkers(config: Config): void {
  if (!existsSync(workersLock(config))) return
  const refusal = `a worker of a former server still uses the data folder ${config.dataDir}: wait until it has ended, or kill it`
  take(workersLock(config), refusal, { waitMs: workersEndWithinMs }).release()
}

function workersLock({ dataDir }: Config): string {
  return join(dataDir, 'workers.lock')
}

/** Whether a server uses the folder now; it may be this process. */
export function isDataDirServed(config: Config): boolean {
  return usesDataDir(config) && SqliteServerLock.isHeld(join(config.dataDir, 'server.lock'))
}

/**
 * Runs `work`, which may migrate the schema. If a migration is missing, `work` needs the server lock: a server of an older
 * version does not know the new schema. PostgreSQL needs no lock, because two neighbouring versions can work on one schema.
 * If `work` fails, the database is closed.
 */
export async function whileNoServerRuns<T>(config: Config, database: Database, work: () => Promise<T>): Promise<T> {
  if (config.databaseUrl !== undefined) return work()
  let held: SqliteServerLock | undefined
  try {
    const missing = await listMissing(database)
    if (missing.length > 0) {
      held = lock(
        config,
        `the schema lacks the migrations ${missing.join(', ')}, and a server of an older version is running on ${config.dataDir}: stop that server, then run this again`,
      )
    }
    return await work()
  } catch (error) {
    await database.close()
    throw error
  } finally {
    held?.release()
  }
}

function lock(config: Config, refusal: string): SqliteServerLock {
  const held = take(join(config.dataDir, 'server.lock'), refusal)
  try {
    waitForFormerWorkers(config)
    return held
  } catch (error) {
    held.release()
    throw error
  }
}

function take(path: string, refusal: string, options?: { readonly waitMs: number }): SqliteServerLock {
  try {
    return new SqliteServerLock(path, options)
  } catch (error) {
    throw error instanceof ServerLockTaken ? new Error(refusal) : error
  }
}
