import { join } from 'node:path'
import { RemoteCalls } from '../../lib/remote-calls.ts'
import { type SupervisorCalls, type WorkerCalls, workerCommand } from './calls.ts'

const mainPath = join(import.meta.dir, '..', '..', 'main.ts')

/** The same program as this one: a compiled binary, or the runtime with the same flags. */
function commandLine(): string[] {
  if (Bun.main.startsWith('/$bunfs/')) return [process.execPath, workerCommand]
  return [process.execPath, ...(Bun.main === mainPath ? process.execArgv : []), mainPath, workerCommand]
}

/** A worker: a child process that serves requests. */
export class WorkerProcess {
  readonly calls: RemoteCalls<SupervisorCalls, WorkerCalls>
  readonly pid: number
  /** How it ended. */
  readonly ended: Promise<string>
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

  kill(): void {
    this.#child.kill('SIGKILL')
  }
}
