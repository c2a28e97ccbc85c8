import { systemClock } from '../adapters/clock-system/system-clock.ts'
import { requestLogLayouts } from '../http/request-log.ts'
import { HttpServer } from '../http/server.ts'
import { type Log, openLog } from '../lib/log.ts'
import { type Built, buildApplication } from './build.ts'
import type { Welcome } from './identity.ts'
import { Jobs } from './jobs.ts'
import { localAddress, publicHost, removeServerAddress, writeServerAddress } from './server-address.ts'
import type { Config } from './settings.ts'
import { describeListenFault } from './start-errors.ts'
import { version } from './version.ts'

/** A running server. Tests start the same server as operators. */
export interface RunningServer {
  /** The address of the server on this machine. */
  readonly url: string
  readonly version: string
  /** The host and port for `docker login`. */
  readonly loginHost: string
  readonly welcome: Welcome
  readonly log: Log
  /** Waits for running requests and stops. A second call waits for the first. */
  stop(): Promise<void>
}

const drainPollMs = 20
/** Limit for the steps that close the server. The grace period of a service manager must include it. */
export const closingMs = 10_000

/**
 * Start:                                       Stop:
 *   1. lock the data folder                      1. report "not ready"; wait for server.shutdown_delay
 *   2. open the stores, migrate the schema       2. close the port; refuse new connections
 *   3. claim the blob store                      3. wait for running requests, at most server.drain
 *   4. read the time of the database             4. remove server.address; end the uploads that still run
 *   5. open the identity service                 5. close the remaining connections
 *   6. open the port                             6. stop the background jobs
 *   7. create the first API key                  7. record the last uses of API keys
 *   8. start the background jobs                 8. close the stores
 *   9. write server.address                      9. release the lock of the data folder
 *
 * Steps 1 to 5 of the start and 7 to 9 of the stop are in `build.ts`, the rest is here. Steps 4 to 9 of the stop have
 * `closingMs` together.
 */
export async function runServer(config: Config): Promise<RunningServer> {
  const format = config.logFormat === 'auto' ? (process.stdout.isTTY ? 'text' : 'json') : config.logFormat
  const { logLevel: level, logBuffer: bufferBytes } = config
  const log = openLog({ format, level, bufferBytes, textLayouts: requestLogLayouts })
  const built = await buildApplication(config, systemClock, (message, fields) => log.write('warn', message, fields))
  const http = await listen(built, log, config)
  warnAboutSettings(config, log)
  // Not before the port is open: if the start failed after this, nobody would ever see the key.
  const welcome = await built.welcome()
  const jobs = new Jobs(built, log, config)
  jobs.start()
  const address = localAddress(config, http.port)
  const loginHost = publicHost(config) ?? address
  writeServerAddress(config, loginHost)
  let stopping: Promise<void> | undefined
  return {
    url: `http://${address}`,
    version,
    loginHost,
    welcome,
    log,
    stop() {
      stopping ??= shutDown(built, http, jobs, log, config)
      return stopping
    },
  }
}

/** Settings that are valid, but probably not what the operator wants. */
function warnAboutSettings(config: Config, log: Log): void {
  if (config.authUrl === undefined && ![...config.roles.values()].some((rights) => rights.includes('operate'))) {
    log.write('warn', 'no role of identity.roles has the right operate: users and keys can be managed by commands only')
  }
  if (config.anonymousPull.length > 0 && config.challenge === 'basic') {
    log.write('warn', 'docker does not pull without credentials unless auth.challenge is bearer')
  }
}

/** Opens the port. If that fails, the stores are closed again and the error names the setting to change. */
async function listen(built: Built, log: Log, config: Config): Promise<HttpServer> {
  try {
    return new HttpServer(built.app, log, {
      host: config.host,
      port: config.port,
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

async function shutDown(built: Built, http: HttpServer, jobs: Jobs, log: Log, config: Config): Promise<void> {
  log.write('info', 'stopping', { pending: http.pending })
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
  await within(closingMs, closeAll(built, http, jobs, config))
  log.write('info', 'stopped')
  await log.close()
}

async function closeAll(built: Built, http: HttpServer, jobs: Jobs, config: Config): Promise<void> {
  removeServerAddress(config)
  await built.app.writers.abortAll()
  await http.close()
  await jobs.stop()
  await built.close()
}

/** Resolves when the work is done or the time is over. */
async function within(ms: number, work: Promise<void>): Promise<void> {
  const over = Promise.withResolvers<void>()
  const timer = setTimeout(over.resolve, ms)
  await Promise.race([work, over.promise])
  clearTimeout(timer)
}
