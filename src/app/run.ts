import { systemClock } from '../adapters/clock-system/system-clock.ts'
import type { Log } from '../lib/log.ts'
import { buildApplication } from './build.ts'
import type { Welcome } from './identity.ts'
import { Jobs } from './jobs.ts'
import { localAddress, publicHost, removeServerAddress, writeServerAddress } from './server-address.ts'
import { drainAndClose, openPort, openServerLog } from './serving.ts'
import type { Config } from './settings.ts'
import { version } from './version.ts'
import { type ServerConfig, withWorkerCount } from './workers/shares.ts'
import { Supervisor } from './workers/supervisor.ts'

/** A running server. Tests start the same server as operators. */
export interface RunningServer {
  /** The address of the server on this machine. */
  readonly url: string
  readonly version: string
  readonly workers: number
  /** The host and port for `docker login`. */
  readonly loginHost: string
  readonly welcome: Welcome
  readonly log: Log
  /** Waits for running requests and stops. A second call waits for the first. */
  stop(): Promise<void>
}

/** What one process or several processes have started. */
interface Started {
  readonly port: number
  readonly welcome: Welcome
  stop(): Promise<void>
}

/**
 * Start:                                       Stop:
 *   1. lock the data folder                      1. report "not ready"; wait for server.shutdown_delay
 *   2. open the stores, migrate the schema       2. close the port; refuse new connections
 *   3. claim the blob store                      3. wait for running requests, at most server.drain
 *   4. read the time of the database             4. end the uploads that still run
 *   5. open the identity service                 5. close the remaining connections
 *   6. open the port                             6. stop the background jobs
 *   7. create the first API key                  7. record the last uses of API keys, pulls and refusals
 *   8. start the background jobs                 8. close the stores
 *   9. write server.address                      9. release the lock of the data folder
 *
 * Steps 1 to 5 of the start and 7 to 9 of the stop are in `build.ts`, the rest is here and in `serving.ts`. Steps 4 to 9
 * of the stop have `closingMs` together. With `server.workers` above 1, `workers/supervisor.ts` divides the steps.
 */
export async function runServer(settings: Config): Promise<RunningServer> {
  const config = withWorkerCount(settings)
  const log = openServerLog(config)
  const started = config.workers > 1 ? await Supervisor.start(config, log) : await startAlone(config, log)
  warnAboutSettings(config, log)
  const address = localAddress(config, started.port)
  const loginHost = publicHost(config) ?? address
  writeServerAddress(config, loginHost)
  let stopping: Promise<void> | undefined
  return {
    url: `http://${address}`,
    version,
    workers: config.workers,
    loginHost,
    welcome: started.welcome,
    log,
    stop() {
      stopping ??= stop(started, log)
      return stopping
    },
  }
}

async function stop(started: Started, log: Log): Promise<void> {
  await started.stop()
  log.write('info', 'stopped')
  await log.close()
}

/** One process does everything. */
async function startAlone(config: ServerConfig, log: Log): Promise<Started> {
  const built = await buildApplication(config, systemClock, (message, fields) => log.write('warn', message, fields))
  const http = await openPort(built, log, config, { port: config.port, isShared: false })
  // Not before the port is open: if the start failed after this, nobody would ever see the key.
  const welcome = await built.welcome()
  const jobs = new Jobs(built, log, config)
  jobs.start()
  return {
    port: http.port,
    welcome,
    stop: async () => {
      log.write('info', 'stopping', { pending: http.pending })
      await drainAndClose(built, http, jobs, config, () => removeServerAddress(config))
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
