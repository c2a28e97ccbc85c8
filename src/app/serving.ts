import { requestLogLayouts } from '../http/request-log.ts'
import { HttpServer } from '../http/server.ts'
import { type Log, openLog } from '../lib/log.ts'
import type { Built } from './build.ts'
import type { Jobs } from './jobs.ts'
import type { Config } from './settings.ts'
import { describeListenFault } from './start-errors.ts'
import type { ServerConfig } from './workers/shares.ts'

// How a process of a server opens the port, and how it drains and closes it.

const drainPollMs = 20
/** Limit for the steps that close the server. The grace period of a service manager must include it. */
export const closingMs = 10_000

export function openServerLog({ logFormat, logLevel: level, logBuffer: bufferBytes, workers }: ServerConfig): Log {
  // `auto` is text on a terminal, and JSON elsewhere.
  const format = logFormat === 'auto' ? (process.stdout.isTTY ? 'text' : 'json') : logFormat
  return openLog({ format, level, bufferBytes, isShared: workers > 1, textLayouts: requestLogLayouts })
}

/** Opens the port. If that fails, the stores are closed again and the error names the setting to change. */
export async function openPort(
  built: Built,
  log: Log,
  config: Config,
  { port, isShared }: { readonly port: number; readonly isShared: boolean },
): Promise<HttpServer> {
  try {
    return new HttpServer(built.app, log, {
      host: config.host,
      port,
      isPortShared: isShared,
      idleSeconds: Math.ceil(config.idleMs / 1000),
      headerBytesMax: config.headerBytes,
      readerWindowMs: config.bodyWindowMs,
      connectionsMax: config.connectionsMax,
    })
  } catch (error) {
    // The operator has to see the error of the port, not one of closing a store.
    await built.close().catch(() => undefined)
    throw describeListenFault(error, config)
  }
}

/** The steps of the stop in `run.ts` from "not ready" on. */
export async function drainAndClose(
  built: Built,
  http: HttpServer,
  jobs: Jobs,
  config: Config,
  onDrained: () => void = () => undefined,
): Promise<void> {
  // Load balancers need a moment to notice. Requests that arrive until then are served.
  built.leave()
  await Bun.sleep(config.shutdownDelayMs)
  // A load balancer repeats every request whose connection was refused, because nothing was sent. It would pass an answer of
  // 503 on to the client if the request must not be repeated.
  http.refuseNew()
  built.app.writers.stopWaiting()
  const deadline = performance.now() + config.drainMs
  while (http.pending > 0 && performance.now() < deadline) await Bun.sleep(drainPollMs)
  // Uploads that still run keep the bytes that they have; their clients can continue on another server. A store that does not
  // answer must not stop the process from ending: the result is that of a crash, which loses nothing.
  onDrained()
  await within(closingMs, closeAll(built, http, jobs))
}

async function closeAll(built: Built, http: HttpServer, jobs: Jobs): Promise<void> {
  await built.app.writers.abortAll()
  await http.close()
  await jobs.stop()
  await built.close()
}

/** Resolves when the work is done or the time is over. */
export async function within(ms: number, work: Promise<unknown>): Promise<void> {
  const over = Promise.withResolvers<void>()
  const timer = setTimeout(over.resolve, ms)
  await Promise.race([work, over.promise])
  clearTimeout(timer)
}
