// Servers in this process with parts that a test may exchange: the stores, or the clock, which the test then moves.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../../src/adapters/clock-system/system-clock.ts'
import { buildApplication } from '../../../src/app/build.ts'
import { readConfig } from '../../../src/app/config.ts'
import type { Application } from '../../../src/http/exchange.ts'
import { HttpServer } from '../../../src/http/server.ts'
import { type Log, openLog } from '../../../src/lib/log.ts'
import { adminSettings } from '../basics/test-project.ts'

export interface AssemblyOptions {
  readonly settings?: Readonly<Record<string, string>>
  readonly change?: (app: Application) => Partial<Application>
  readonly log?: Log
}

/** A server without background jobs. `now` is its clock; `unchanged` is the application without the exchanged parts. */
export async function assembleServer(
  dataDir: string,
  { settings = {}, change = () => ({}), log }: AssemblyOptions,
  now = systemClock.now,
) {
  const config = readConfig(undefined, {
    BERTH_DATA_DIR: dataDir,
    BERTH_SERVER__PORT: '0',
    ...adminSettings,
    BERTH_LOG__LEVEL: 'silent',
    ...settings,
  })
  const built = await buildApplication(config, { ...systemClock, now })
  const app: Application = { ...built.app, ...change(built.app) }
  const http = new HttpServer(app, log ?? openLog({ format: 'json', level: config.logLevel }), {
    host: '127.0.0.1',
    port: config.port,
    idleSeconds: 120,
    headerBytesMax: config.headerBytes,
    readerWindowMs: config.bodyWindowMs,
    connectionsMax: 0,
  })
  const stop = async () => {
    await built.app.writers.abortAll()
    await http.close()
    await built.close()
  }
  return { url: `http://127.0.0.1:${http.port}`, port: http.port, http, app, unchanged: built.app, stop }
}

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

/** Its clock stands still between moves: how long a test takes does not change what it sees. */
export async function startMoved(options: AssemblyOptions = {}): Promise<MovedServer> {
  const dataDir = mkdtempSync(join(tmpdir(), 'berth-moved-'))
  let time = Date.now()
  const now = () => time
  const { url, port, stop } = await assembleServer(dataDir, options, now)
  return {
    url,
    port,
    dataDir,
    now,
    move: (ms) => {
      time += ms
    },
    ask: (method, path, request = {}) => fetch(url + path, { redirect: 'manual', ...request, method }),
    async stop() {
      await stop()
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}
