// Databases of both engines, nothing in them yet; closed when the test file is done.
import { afterAll } from 'bun:test'
import { join } from 'node:path'
import type { Database } from '../../../src/adapters/metadata-sql/database.ts'
import { PostgresDatabase } from '../../../src/adapters/metadata-sql/postgres-database.ts'
import { SqliteDatabase } from '../../../src/adapters/metadata-sql/sqlite-database.ts'
import { type Need, testNeeding } from '../basics/needs.ts'
import { useTemporaryFolders } from '../basics/temporary-folders.ts'
import { postgres } from '../postgres/postgres-server.ts'
import { limits, sharedPostgres } from './test-stores.ts'

export interface Engine {
  readonly name: string
  /** The same database opened again and again: connections of several processes. */
  place(): Promise<() => Database>
}

export interface Engines {
  readonly sqlite: Engine
  readonly postgres: Engine
  /** A test for each, which says loudly if an engine is not here. */
  each(name: string, body: (engine: Engine) => Promise<void>): void
}

/** Called at the top of a test file. */
export function useEngines(purpose: string): Engines {
  const newFolder = useTemporaryFolders(purpose)
  const opened: Database[] = []
  afterAll(async () => {
    for (const database of opened) await database.close()
  })
  const kept = (open: () => Database) => () => {
    const database = open()
    opened.push(database)
    return database
  }
  const sqlite: Engine = {
    name: 'SQLite',
    async place() {
      const path = join(newFolder(), 'metadata.sqlite')
      return kept(() => new SqliteDatabase(path))
    },
  }
  const ofPostgres: Engine = {
    name: 'PostgreSQL',
    async place() {
      const url = await (await sharedPostgres()).newDatabase()
      return kept(() => new PostgresDatabase({ ...limits, url }))
    },
  }
  const always: Need = { isMet: true, reason: '' }
  return {
    sqlite,
    postgres: ofPostgres,
    each(name, body) {
      testNeeding(always, `${name} (SQLite)`, () => body(sqlite))
      testNeeding(postgres, `${name} (PostgreSQL)`, () => body(ofPostgres))
    },
  }
}
