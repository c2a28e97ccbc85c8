import { systemClock } from '../../adapters/clock-system/system-clock.ts'
import type { HttpServer } from '../../http/server.ts'
import { type Attempt, type AttemptLimits, runAttempt } from '../../identity/failure-limits.ts'
import { shareChecks } from '../../identity/passwords.ts'
import { fingerprintOf } from '../../lib/hashing.ts'
import type { Log } from '../../lib/log.ts'
import { RemoteCalls } from '../../lib/remote-calls.ts'
import { RegistryRefusal, Unavailable } from '../../oci/errors.ts'
import { type Built, buildApplication } from '../build.ts'
import { Jobs } from '../jobs.ts'
import { drainAndClose, openPort, openServerLog } from '../serving.ts'
import type { SupervisorCalls, WorkerCalls } from './calls.ts'
import type { ServerConfig } from './shares.ts'

type Supervisor = RemoteCalls<WorkerCalls, SupervisorCalls>

interface Running {
  readonly config: ServerConfig
  readonly built: Built
  readonly http: HttpServer
  readonly jobs: Jobs
  readonly log: Log
}

/**
 * Serves requests for a supervisor, which has started this process and sends it messages. Resolves when the supervisor
 * has stopped it. Ends the process at once if the supervisor has gone: nothing may listen on the port without it.
 */
export async function runWorker(): Promise<void> {
  // The supervisor passes the signal on. A terminal and some service managers signal every process of a server.
  for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => undefined)
  const stopped = Promise.withResolvers<void>()
  let running: Running | undefined
  const supervisor: Supervisor = new RemoteCalls<WorkerCalls, SupervisorCalls>(
    {
      start: async ({ config, port }) => {
        running = await startServing(supervisor, config, port)
      },
      stop: () => {
        if (running === undefined) stopped.resolve()
        else stopServing(running).then(stopped.resolve, stopped.reject)
      },
      clearIdentities: async () => running?.built.clearIdentitiesHere(),
      endWriter: async ({ id, onlyIfDead }) => running?.built.app.writers.endHere(id, onlyIfDead) ?? true,
      beat: () => undefined,
    },
    (message) => process.send?.(message),
  )
  process.on('message', (message) => supervisor.receive(message))
  process.on('disconnect', () => process.exit(1))
  await stopped.promise
}

async function startServing(supervisor: Supervisor, config: ServerConfig, port: number): Promise<Running> {
  const log = openServerLog(config)
  const warn = (message: string, fields?: Readonly<Record<string, unknown>>) => log.write('warn', message, fields)
  shareChecks(config.workers)
  const built = await buildApplication(config, systemClock, warn, {
    isWorker: true,
    processes: config.workers,
    failures: new LimitsOfServer(supervisor),
    clearElsewhere: () => supervisor.call('clearIdentities', undefined),
    endElsewhere: (id, onlyIfDead) => supervisor.call('endWriter', { id, onlyIfDead }),
  })
  if (!process.connected) throw new Error('the supervisor has ended')
  const http = await openPort(built, log, config, { port, isShared: true })
  const jobs = new Jobs(built, log, config)
  jobs.startOfWorker()
  return { config, built, http, jobs, log }
}

async function stopServing({ config, built, http, jobs, log }: Running): Promise<void> {
  await drainAndClose(built, http, jobs, config)
  await log.close()
}

/** The limits for failed logins are in the supervisor, because they hold for all workers together. */
class LimitsOfServer implements AttemptLimits {
  readonly #supervisor: Supervisor

  constructor(supervisor: Supervisor) {
    this.#supervisor = supervisor
  }

  async run<T>(attempt: Attempt, work: () => Promise<T | undefined>): Promise<T | undefined> {
    // The supervisor only compares the text, so no password leaves this process.
    const begun = await this.#supervisor.call('beginAttempt', {
      ...attempt,
      credential: fingerprintOf(attempt.credential),
    })
    if ('refusal' in begun) throw new RegistryRefusal(begun.refusal, ...begun.details)
    if ('unavailable' in begun) throw new Unavailable(begun.unavailable)
    const { ticket } = begun
    return runAttempt((result) => this.#supervisor.tell('endAttempt', { ticket, result }), work)
  }
}
