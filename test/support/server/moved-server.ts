// The server in this process with a clock that the test moves, and with parts that the test may exchange.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../../src/adapters/clock-system/system-clock.ts'
import { buildApplication } from '../../../src/app/build.ts'
import { readConfig } from '../../../src/app/config.ts'
import type { Application } from '../../../src/http/exchange.ts'
import { HttpServer } from '../../../src/http/server.ts'
import { openLog } from '../../../src/lib/log.ts'
import { testAdminPassword, testApiKey } from '../basics/test-project.ts'

export interface MovedServer {
  readonly url: string
  readonly port: number
  readonly dataDir: string
  /** Lets so much time go by. */
  move(ms: number): void
  now(): number
  ask(method: string, path: string, request?: Omit<RequestInit, 'method'>): Promise<Response>
  stop(): Promise<void>
}

export interface MovedServerOptions {
  readonly settings?: Readonly<Record<string, string>>
  readonly change?: (app: Application) => Partial<Application>
}

export async function startMoved({
  settings = {},
  change = () => ({}),
}: MovedServerOptions = {}): Promise<MovedServer> {
  const dataDir = mkdtempSync(join(tmpdir(), 'berth-moved-'))
  const config = readConfig(undefined, {
    BERTH_DATA_DIR: dataDir,
    BERTH_IDENTITY__ADMIN_API_KEY: testApiKey,
    BERTH_IDENTITY__ADMIN_PASSWORD: testAdminPassword,
    ...settings,
  })
  // It stands still between moves: how long a test takes must not change what it sees.
  let time = Date.now()
  const now = () => time
  const built = await buildApplication(config, { ...systemClock, now })
  const log = openLog({ format: 'json', level: 'silent' })
  const app = { ...built.app, ...change(built.app) }
  const http = new HttpServer(app, log, {
    host: '127.0.0.1',
    port: 0,
    idleSeconds: 30,
    headerBytesMax: config.headerBytes,
    readerWindowMs: config.bodyWindowMs,
    connectionsMax: 0,
  })
  const url = `http://127.0.0.1:${http.port}`
  return {
    url,
    port: http.port,
    dataDir,
    now,
    move: (ms) => {
      time += ms
    },
    ask: (method, path, request = {}) => fetch(url + path, { redirect: 'manual', ...request, method }),
    async stop() {
      await http.close()
      await built.close()
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}
