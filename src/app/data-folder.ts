import { existsSync } from 'node:fs'
import { access, constants, mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Database } from '../adapters/metadata-sql/database.ts'
import { listMissing } from '../adapters/metadata-sql/migrate.ts'
import { ServerLockTaken, SqliteServerLock } from '../adapters/metadata-sql/sqlite-server-lock.ts'
import { syncFolder } from '../lib/sync-folder.ts'
import type { Config } from './settings.ts'
import { describeDataFault } from './start-errors.ts'

// The folder `data_dir`: how it is made, and which process may work on it.

export type ServerLock = SqliteServerLock

/** Whether anything that must not be lost is on this machine: then one server alone works on the folder. */
export function hasDataHere({ databaseUrl, bucket }: Config): boolean {
  return databaseUrl === undefined || bucket === undefined
}

/** Makes the folder where it is missing. Refuses one that cannot be used, before anything in it is touched. */
export async function makeDataDir(config: Config): Promise<void> {
  if (!hasDataHere(config)) return
  const { dataDir } = config
  try {
    const made = await mkdir(dataDir, { recursive: true, mode: 0o700 })
    if (made !== undefined) await syncFolder(dirname(made))
    for (const path of ['.', ...contents].map((name) => join(dataDir, name))) {
      if (existsSync(path)) await access(path, constants.R_OK | constants.W_OK)
    }
  } catch (error) {
    throw describeDataFault(error, config)
  }
}

/** What Berth itself makes there. */
const contents = ['metadata.sqlite', 'server.lock', 'blobs', 'identity']

/** Held by a server from before it looks at its data until it has closed them. Undefined where servers share everything. */
export function lockForServer(config: Config): SqliteServerLock | undefined {
  if (!hasDataHere(config)) return undefined
  return lock(
    config,
    `another Berth is serving this data folder, ${config.dataDir}: stop that server, or set data_dir to another folder`,
  )
}

/** Whether a server is running on the folder, this process included. */
export function isDataDirServed(config: Config): boolean {
  return hasDataHere(config) && SqliteServerLock.isHeld(join(config.dataDir, 'server.lock'))
}

/**
 * SQLite's schema is changed only while no server works on the folder: a server of an older version would meet a schema that
 * it does not know. Where no migration is missing, the work goes on beside a server. PostgreSQL serves two neighbouring
 * versions. If the work fails, the database is closed.
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

function lock({ dataDir }: Config, refusal: string): SqliteServerLock {
  try {
    return new SqliteServerLock(join(dataDir, 'server.lock'))
  } catch (error) {
    throw error instanceof ServerLockTaken ? new Error(refusal) : error
  }
}
