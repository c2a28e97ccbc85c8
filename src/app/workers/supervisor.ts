import { systemClock } from '../../adapters/clock-system/system-clock.ts'
import { type ReservedPort, reservePort } from '../../http/server.ts'
import type { Log } from '../../lib/log.ts'
import { Disconnected } from '../../lib/remote-calls.ts'
import { type Built, buildApplication } from '../build.ts'
import type { Welcome } from '../identity.ts'
import { Jobs } from '../jobs.ts'
import { removeServerAddress } from '../server-address.ts'
import { closingMs, within } from '../serving.ts'
import { describeListenFault } from '../start-errors.ts'
import { AttemptsOfWorker } from './attempts.ts'
import type { SupervisorCalls, WriterToEnd } from './calls.ts'
import { type ServerConfig, shareOfSupervisor, shareOfWorker } from './shares.ts'
import { WorkerProcess } from './worker-process.ts'

const restartMinMs = 100
const restartMaxMs = 10_000
/** A worker that ran for this long did not fail at its start. */
const steadyAfterMs = 60_000
/** The part of `closingMs` that is left for the supervisor itself. */
const ownClosingMs = 1_000
/** How often each worker must show that its event loop runs. */
const beatEveryMs = 5_000
/** How long a worker may take to answer a call. */
const answerMaxMs = 10_000

/**
 * A server with several processes (`server.workers` above 1). The supervisor is the process that the operator started. It
 * locks the data folder, migrates the schema, runs the background jobs, starts the workers, restarts a worker that died,
 * and stops them. It serves no requests. The workers listen on the same port, and the system distributes connections.
 *
 * The supervisor also applies the limits for failed logins of all workers together (`attempts.ts`), and passes calls from one
 * worker to the others.
 */
export class Supervisor {
  readonly #config: ServerConfig
  readonly #log: Log
  readonly #built: Built
  readonly #jobs: Jobs
  readonly #port: ReservedPort
  readonly #workers = new Set<WorkerProcess>()
  #welcome: Welcome | undefined
  #isStopping = false
  #beats: Timer | undefined

  private constructor(config: ServerConfig, log: Log, built: Built, port: ReservedPort) {
    this.#config = config
    this.#log = log
    this.#built = built
    this.#port = port
    this.#jobs = new Jobs(built, log, config)
  }

  static async start(config: ServerConfig, log: Log): Promise<Supervisor> {
    const warn = (message: string, fields?: Readonly<Record<string, unknown>>) => log.write('warn', message, fields)
    const built = await buildApplication(shareOfSupervisor(config), systemClock, warn)
    let supervisor: Supervisor | undefined
    try {
      const port = await reservePort(config.host, config.port)
      supervisor = new Supervisor(config, log, built, port)
      await supervisor.#startAll()
      return supervisor
    } catch (error) {
      if (supervisor !== undefined) await supervisor.#killAll()
      await built.close().catch(() => undefined)
      throw describeListenFault(error, config)
    }
  }

  get port(): number {
    return this.#port.port
  }

  get welcome(): Welcome {
    if (this.#welcome === undefined) throw new Error('the server has not started yet')
    return this.#welcome
  }

  async #startAll(): Promise<void> {
    await Promise.all(
      Array.from({ length: this.#config.workers }, async () => {
        await this.#startWorker()
        // With the first worker: the supervisor answers 503, and that worker already reports that it is ready.
        await this.#port.release()
      }),
    )
    // Not before the port is open: if the start failed after this, nobody would ever see the key.
    this.#welcome = await this.#built.welcome()
    this.#jobs.start()
    this.#beats = setInterval(() => this.#beatAll(), beatEveryMs)
  }

  /** Connections of a worker that hangs would wait without end, and the system would give it new ones. */
  #beatAll(): void {
    for (const worker of this.#workers) {
      if (worker.beat()) continue
      this.#log.write('error', 'a worker does not answer and is killed', { pid: worker.pid })
      worker.kill()
    }
  }

  /** Resolves when the worker listens. A worker that listened once is replaced when it ends. */
  async #startWorker(): Promise<void> {
    const startedAt = performance.now()
    let hasStarted = false
    const attempts = new AttemptsOfWorker(this.#built.failures)
    const calls: SupervisorCalls = {
      beginAttempt: (attempt) => attempts.begin(attempt),
      endAttempt: ({ ticket, result }) => attempts.end(ticket, result),
      clearIdentities: () => this.#clearIdentities(worker),
      endWriter: (writer) => this.#endWriter(worker, writer),
    }
    const worker: WorkerProcess = new WorkerProcess(calls)
    this.#workers.add(worker)
    void worker.ended.then((how) => {
      this.#workers.delete(worker)
      attempts.close()
      if (hasStarted && !this.#isStopping) this.#replace(worker.pid, how, performance.now() - startedAt)
    })
    try {
      await worker.calls.call('start', { config: shareOfWorker(this.#config), port: this.port })
    } catch (error) {
      worker.kill()
      throw error
    }
    hasStarted = true
  }

  #replace(pid: number, how: string, ranMs: number): void {
    this.#log.write('error', 'a worker ended and is replaced', { pid, how })
    // The turns of its uploads would otherwise last until they expire. A writer that is alive renews its turn, and no
    // other worker writes to a file before that writer has ended.
    if (this.#config.databaseUrl === undefined) {
      this.#built.app.metadata.uploads.releaseAllTurns().catch(() => undefined)
    }
    this.#restartAfter(ranMs > steadyAfterMs ? 0 : restartMinMs)
  }

  #restartAfter(delayMs: number): void {
    setTimeout(() => {
      if (this.#isStopping) return
      this.#startWorker().catch((error: unknown) => {
        if (this.#isStopping) return
        this.#log.write('error', 'a worker could not start; this is tried until it succeeds', { error })
        this.#restartAfter(Math.min(restartMaxMs, Math.max(restartMinMs, delayMs) * 2))
      })
    }, delayMs)
  }

  async #clearIdentities(caller: WorkerProcess): Promise<void> {
    await Promise.all(this.#others(caller).map((worker) => this.#clearIdentitiesOf(worker)))
  }

  /** A worker that does not answer in time is killed. When it goes on, it would accept revoked credentials from its cache. */
  async #clearIdentitiesOf(worker: WorkerProcess): Promise<void> {
    let hasAnswered = false
    const answer = worker.calls.call('clearIdentities', undefined).then(() => {
      hasAnswered = true
    })
    // Rejected: the worker has ended.
    await within(
      answerMaxMs,
      answer.catch(() => undefined),
    )
    if (hasAnswered) return
    worker.kill()
    await worker.ended
  }

  /** False if a worker has a writer that is alive, or does not answer. A worker that has ended has no writer. */
  async #endWriter(caller: WorkerProcess, writer: WriterToEnd): Promise<boolean> {
    let hasEnded = false
    const answers = this.#others(caller).map(({ calls }) => calls.call('endWriter', writer))
    const all = Promise.allSettled(answers).then((results) => {
      hasEnded = results.every((result) =>
        result.status === 'fulfilled' ? result.value : result.reason instanceof Disconnected,
      )
    })
    await within(answerMaxMs, all)
    return hasEnded
  }

  #others(caller: WorkerProcess): WorkerProcess[] {
    return [...this.#workers].filter((worker) => worker !== caller)
  }

  async stop(): Promise<void> {
    this.#isStopping = true
    clearInterval(this.#beats)
    this.#log.write('info', 'stopping', { workers: this.#workers.size })
    for (const { calls } of this.#workers) calls.tell('stop', undefined)
    const { shutdownDelayMs, drainMs } = this.#config
    await within(shutdownDelayMs + drainMs + closingMs - ownClosingMs, this.#allEnded())
    await this.#killAll()
    removeServerAddress(this.#config)
    await within(ownClosingMs, this.#closeAll())
  }

  async #closeAll(): Promise<void> {
    await this.#jobs.stop()
    await this.#built.close()
  }

  async #killAll(): Promise<void> {
    for (const worker of this.#workers) worker.kill()
    await this.#allEnded()
  }

  async #allEnded(): Promise<void> {
    await Promise.all([...this.#workers].map(({ ended }) => ended))
  }
}
