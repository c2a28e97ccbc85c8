// PostgreSQL that fails, seen through the adapter: a server of one test file, with databases of its own.
import { afterAll, afterEach, beforeAll } from 'bun:test'
import { PostgresDatabase } from '../../src/adapters/metadata-sql/postgres-database.ts'
import type { PostgresSettings } from '../../src/adapters/metadata-sql/postgres-session.ts'
import { Unavailable } from '../../src/oci/errors.ts'
import { until } from '../support/clocks/until.ts'
import { PostgresProxy } from '../support/postgres/postgres-proxy.ts'
import { type PostgresServer, startPostgres } from '../support/postgres/postgres-server.ts'

/** One connection for look-ups, two for all else. Short limits: a silent server is taken for gone after 2.6 s. */
export const limits = {
  connectionsMax: 3,
  queueMax: 4,
  statementTimeoutMs: 600,
  lockTimeoutMs: 300,
  connectTimeoutMs: 500,
}
const exclusive = 2

export const insert = 'INSERT INTO things (id) VALUES ($1)'

export const nameOf = (url: string) => url.split('/').at(-1) ?? ''
export const put = (database: PostgresDatabase, id: number) => database.run(insert, [id])

export async function countThings(database: PostgresDatabase): Promise<number | undefined> {
  return (await database.first<{ n: number }>('SELECT count(*) AS n FROM things WHERE id < $1', [1_000_000]))?.n
}

/** `done`, or the state of the standard (`57P01`), or the name of another error. Only `Unavailable` is caught. */
export async function endOf(promise: Promise<unknown>): Promise<string> {
  try {
    await promise
    return 'done'
  } catch (error) {
    if (!(error instanceof Unavailable) || !(error.cause instanceof Error)) throw error
    return stateOf(error.cause) ?? stateOf(error.cause.cause) ?? error.cause.name
  }
}

function stateOf(error: unknown): string | undefined {
  return error instanceof Error && 'errno' in error && typeof error.errno === 'string' ? error.errno : undefined
}

/**
 * As many transactions at once as there are connections for them, each of which goes on when all have begun; and a look-up.
 * On a busy machine one may find that it waited for too long: then all of them begin again.
 */
export async function useAllConnections(database: PostgresDatabase): Promise<void> {
  await until('all connections are used at once', async () => (await endOf(useOnce(database))) === 'done')
}

async function useOnce(database: PostgresDatabase): Promise<void> {
  let begun = 0
  const all = Promise.withResolvers<void>()
  const one = () =>
    database.transaction(async (queries) => {
      await queries.first('SELECT 1 AS here WHERE $1 = 1', [1])
      begun += 1
      if (begun === exclusive) all.resolve()
      await all.promise
    })
  const using = Array.from({ length: exclusive }, () => one().finally(all.resolve))
  for (const ended of await Promise.allSettled(using)) if (ended.status === 'rejected') throw ended.reason
  await database.lookUp('SELECT 1 AS here WHERE $1 = 1', [1])
}

export interface BrokenPostgres {
  readonly server: PostgresServer
  open(more?: Partial<PostgresSettings>): Promise<PostgresDatabase>
  throughProxy(): Promise<{ database: PostgresDatabase; proxy: PostgresProxy }>
  /** The server ends connections of ours to that database: all, or those whose row in pg_stat_activity is such. */
  endBackends(url: string, which?: string): Promise<void>
}

/** Call it where the tests are described; the server is there while they run. */
export function useBrokenPostgres(): BrokenPostgres {
  let server: PostgresServer
  const opened: PostgresDatabase[] = []
  const proxies: PostgresProxy[] = []
  beforeAll(async () => {
    server = await startPostgres()
  })
  afterEach(async () => {
    for (const database of opened.splice(0)) await database.close()
    for (const proxy of proxies.splice(0)) await proxy.stop()
  })
  afterAll(() => server.stop())
  const open = async (more: Partial<PostgresSettings> = {}) => {
    const database = new PostgresDatabase({ ...limits, url: more.url ?? (await server.newDatabase()), ...more })
    opened.push(database)
    await database.run('CREATE TABLE IF NOT EXISTS things (id {number} PRIMARY KEY, name {text})', [])
    return database
  }
  return {
    get server() {
      return server
    },
    open,
    async throughProxy() {
      const proxy = await PostgresProxy.start(server.port)
      proxies.push(proxy)
      return { proxy, database: await open({ url: proxy.through(await server.newDatabase()) }) }
    },
    async endBackends(url, which = 'true') {
      const ours = `datname = '${nameOf(url)}' AND application_name = 'berth' AND ${which}`
      await server.ask(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${ours}`)
    },
  }
}
