// The whole registry in this process without a socket. The test can wrap its stores and read the statements.
import { join } from 'node:path'
import { SqlMetadataStore } from '../../../src/adapters/metadata-sql/sql-metadata-store.ts'
import { SqliteDatabase } from '../../../src/adapters/metadata-sql/sqlite-database.ts'
import { buildApplication } from '../../../src/app/build.ts'
import { readConfig } from '../../../src/app/config.ts'
import { Pipeline } from '../../../src/http/pipeline.ts'
import { openLog } from '../../../src/lib/log.ts'
import type { MetadataStore } from '../../../src/ports/metadata-store.ts'
import { adminSettings, testApiKey } from '../basics/test-project.ts'
import { recordStatements } from '../stores/hooked-database.ts'
import { type ApiServer, type Question, readReply } from './api-server.ts'

export interface WiredRegistry extends ApiServer {
  /** What requests see. */
  readonly metadata: MetadataStore
  /** The statements of all requests so far. */
  readonly statements: string[]
}

export interface Wiring {
  readonly settings?: Readonly<Record<string, string>>
  /** Stands between the requests and the store. */
  readonly wrap?: (metadata: MetadataStore) => MetadataStore
}

export async function wireRegistry(dataDir: string, { settings = {}, wrap }: Wiring = {}): Promise<WiredRegistry> {
  const built = await buildApplication(
    readConfig(undefined, {
      BERTH_DATA_DIR: dataDir,
      ...adminSettings,
      ...settings,
    }),
  )
  const { database, statements } = recordStatements(new SqliteDatabase(join(dataDir, 'metadata.sqlite')))
  const store = await SqlMetadataStore.open(database)
  const metadata = wrap?.(store) ?? store
  const pipeline = new Pipeline({ ...built.app, metadata }, openLog({ format: 'json', level: 'silent' }))
  return {
    url: 'http://localhost',
    port: 0,
    dataDir,
    metadata,
    statements,
    async ask(method, path, question = {}) {
      // Requests from a network come in turns of their own; reads of one turn share what they see.
      await new Promise(setImmediate)
      return readReply(await pipeline.handle(toRequest(method, path, question)))
    },
    async stop() {
      await store.close()
      await built.close()
    },
  }
}

function toRequest(method: string, path: string, { headers = {}, body, key = testApiKey }: Question): Request {
  const credentials = key === 'none' ? {} : { 'x-api-key': key }
  const init = { method, headers: { host: 'localhost', ...credentials, ...headers } }
  return new Request(`http://localhost${path}`, body === undefined ? init : { ...init, body })
}

/** The same server with the API key of another caller. */
export function askedBy<S extends ApiServer>(server: S, key: string): S {
  return {
    ...server,
    ask: (method: string, path: string, question = {}) => server.ask(method, path, { key, ...question }),
  }
}
