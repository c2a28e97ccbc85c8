import { join } from 'node:path'
import { RemoteCalls } from '../../lib/remote-calls.ts'
import { type SupervisorCalls, type WorkerCalls, workerCommand } from './calls.ts'

const mainPath = join(import.meta.dir, '..', '..', 'main.ts')

/** The same program as this one: a compiled binary, or the runtime with the same flags. */
function commandLine(): string[] {
  if (Bun.main.startsWith('/$bunfs/')) return [process.execPath, workerCommand]
  return [process.execPath, ...(Bun.main === mainPath ? process.execArgv : []), mainPath, workerCommand]
}

/** A worker that leaves so many heartbeats in a row unanswered is killed. */
const missedBeatsMax = 3

/** A worker: a child process that serves requests. */
export class WorkerProcess {
  readonly calls: RemoteCalls<SupervisorCalls, WorkerCalls>
  readonly pid: number
  /** How it ended. */
  readonly ended: Promise<string>
  #missedBeats = 0
  readonly #child: Bun.Subprocess<'ignore', 'inherit', 'inherit'>

  constructor(calls: SupervisorCalls) {
    this.calls = new RemoteCalls<SupervisorCalls, WorkerCalls>(calls, (message) => this.#child.send(message))
    this.#child = Bun.spawn(commandLine(), {
      // The worker ends when this channel closes, so it does not outlive this process.
      ipc: (message) => this.calls.receive(message),
      serialization: 'advanced',
      // Each process writes its own log lines.
      stdio: ['ignore', 'inherit', 'inherit'],
    })
    this.pid = this.#child.pid
    this.ended = this.#child.exited.then((code) => {
      this.calls.close()
      const { signalCode } = this.#child
      return signalCode === null ? `exit code ${code}` : String(signalCode)
    })
  }

  /**
   * Must be called at regular intervals. False if the worker has answered none of the last heartbeats, for example because it was
   * stopped or its event loop is blocked. Heartbeats are counted and not timed: after a pause of the whole machine, the worker
   * has time to answer.
   */
  beat(): boolean {
    if (this.#missedBeats >= missedBeatsMax) return false
    this.#missedBeats += 1
    this.calls.call('beat', undefined).then(
      () => {
        this.#missedBeats = 0
      },
      // The worker has ended.
      () => undefined,
    )
    return true
  }

  kill(): void {
    this.#child.kill('SIGKILL')
  }
}
