// The same server in this process: quick to start, and its application can be reached from the test.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readConfig } from '../../../src/app/config.ts'
import { type RunningServer, runServer } from '../../../src/app/run.ts'
import { adminSettings, testApiKey } from '../basics/test-project.ts'
import { storeSettings } from '../stores/test-stores.ts'
import { workerSettings } from './workers.ts'

export interface TestServer {
  readonly url: string
  readonly dataDir: string
  readonly running: RunningServer
  /** Asks with the administrator's API key unless the request brings credentials of its own. */
  fetch(path: string, init?: RequestInit): Promise<Response>
  /** Asks with exactly these headers and no credentials. */
  fetchWithoutKey(path: string, init?: RequestInit): Promise<Response>
  stop(): Promise<void>
}

/** Starts a server on a free port. `settings` are environment variables such as `BERTH_LIMITS__JSON_DEPTH`. */
export async function startTestServer(settings: Readonly<Record<string, string>> = {}): Promise<TestServer> {
  const dataDir = mkdtempSync(join(tmpdir(), 'berth-api-'))
  const config = readConfig(undefined, {
    BERTH_DATA_DIR: dataDir,
    BERTH_SERVER__PORT: '0',
    ...adminSettings,
    BERTH_LOG__LEVEL: 'silent',
    ...workerSettings(),
    ...(await storeSettings(dataDir)),
    ...settings,
  })
  const running = await runServer(config)
  const fetchWithoutKey = (path: string, init: RequestInit = {}): Promise<Response> =>
    fetch(running.url + path, { redirect: 'manual', ...init })
  return {
    url: running.url,
    dataDir,
    running,
    fetchWithoutKey,
    fetch(path, init = {}) {
      const headers = new Headers(init.headers)
      if (!headers.has('authorization')) headers.set('authorization', basic('apikey', testApiKey))
      return fetchWithoutKey(path, { ...init, headers })
    },
    async stop() {
      await running.stop()
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

export function basic(user: string, password: string): string {
  return `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
}
