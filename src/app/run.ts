import { systemClock } from '../adapters/clock-system/system-clock.ts'
import { requestLogLayouts } from '../http/request-log.ts'
import { HttpServer } from '../http/server.ts'
import { type Log, openLog } from '../lib/log.ts'
import { type Built, buildApplication } from './build.ts'
import type { Welcome } from './identity.ts'
import { Jobs } from './jobs.ts'
import { forgetServerAddress, localAddress, noteServerAddress, publicHost } from './server-address.ts'
import type { Config } from './settings.ts'
import { describeListenFault } from './start-errors.ts'
import { version } from './version.ts'

/** A server that runs: what operators start is what tests start. */
export interface RunningServer {
  /** Where this machine reaches the server. */
  readonly url: string
  readonly version: string
  /** What users log in to. */
  readonly loginHost: string
  readonly welcome: Welcome
  readonly log: Log
  /** Drains and stops; the second call waits for the first. */
  stop(): Promise<void>
}

const drainPollMs = 20
/** For what is left when no request runs any more. Whoever stops us has to wait for it too. */
export const closingMs = 10_000

export async function runServer(config: Config): Promise<RunningServer> {
  const format = config.logFormat === 'auto' ? (process.stdout.isTTY ? 'text' : 'json') : config.logFormat
  const { logLevel: level, logBuffer: bufferBytes } = config
  const log = openLog({ format, level, bufferBytes, textLayouts: requestLogLayouts })
  const built = await buildApplication(config, systemClock, (message, fields) => log.write('warn', message, fields))
  const http = await listen(built, log, config)
  if (config.authUrl === undefined && ![...config.roles.values()].some((rights) => rights.includes('operate'))) {
    log.write('warn', 'no role of identity.roles has the right operate: users and keys can be managed by commands only')
  }
  if (config.anonymousPull.length > 0 && config.challenge === 'basic') {
    log.write('warn', 'docker does not pull without credentials unless auth.challenge is bearer')
  }
  // The first API key is made only now: had the port not opened, nobody would have seen it.
  const welcome = await built.welcome()
  const jobs = new Jobs(built, log, config)
  jobs.start()
  const address = localAddress(config, http.port)
  const loginHost = publicHost(config) ?? address
  noteServerAddress(config, loginHost)
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
    // The port is the fault to mend: a store that cannot be closed must not hide it.
    await built.close().catch(() => undefined)
    throw describeListenFault(error, config)
  }
}

/** Not ready, then no new connections; running requests finish or are cut with what they have, and nothing is left. */
async function shutDown(built: Built, http: HttpServer, jobs: Jobs, log: Log, config: Config): Promise<void> {
  log.write('info', 'stopping', { pending: http.pending })
  // Load balancers need a moment to see that we are not ready; until then their requests still come, and are served.
  built.leave()
  await Bun.sleep(config.shutdownDelayMs)
  // A connection that is refused tells a balancer that nothing was sent: it asks another server, whatever the request is.
  // An answer of 503 would be passed on for every request that must not be repeated.
  http.refuseNew()
  built.app.running.stopWaiting()
  const deadline = performance.now() + config.drainMs
  while (http.pending > 0 && performance.now() < deadline) await Bun.sleep(drainPollMs)
  // Uploads that are still running keep what they received; their clients can go on elsewhere. A store that does not answer
  // must not keep us: what is cut here is as after a crash, which loses nothing.
  await within(closingMs, closeAll(built, http, jobs, config))
  log.write('info', 'stopped')
  await log.close()
}

async function closeAll(built: Built, http: HttpServer, jobs: Jobs, config: Config): Promise<void> {
  forgetServerAddress(config)
  await built.app.running.stopAll()
  await http.close()
  await jobs.stop()
  await built.close()
}

/** Resolves when the work is done, or has had its time. */
async function within(ms: number, work: Promise<void>): Promise<void> {
  const over = Promise.withResolvers<void>()
  const timer = setTimeout(over.resolve, ms)
  await Promise.race([work, over.promise])
  clearTimeout(timer)
}
