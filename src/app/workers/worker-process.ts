import { join } from 'node:path'
import type { ServerLog } from '../../lib/log.ts'
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
  /** How it ended, after its last log line was copied. */
  readonly ended: Promise<string>
  readonly #child: Bun.Subprocess<'ignore', 'pipe', 'inherit'>

  constructor(calls: SupervisorCalls, log: ServerLog) {
    this.calls = new RemoteCalls<SupervisorCalls, WorkerCalls>(calls, (message) => this.#child.send(message))
    this.#child = Bun.spawn(commandLine(), {
      // The worker ends when this channel closes, so it does not outlive this process.
      ipc: (message) => this.calls.receive(message),
      serialization: 'advanced',
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    this.pid = this.#child.pid
    const copied = copyLines(this.#child.stdout, log)
    this.ended = this.#child.exited.then(async (code) => {
      this.calls.close()
      await copied
      const { signalCode } = this.#child
      return signalCode === null ? `exit code ${code}` : String(signalCode)
    })
  }

  kill(): void {
    this.#child.kill('SIGKILL')
  }
}

/** Copies whole lines, because the lines of several processes go to one output. */
async function copyLines(output: ReadableStream<Uint8Array>, log: ServerLog): Promise<void> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const bytes of output) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) log.copy(`${line}\n`)
    // The worker has gathered the lines already.
    log.flush()
  }
  // A killed worker may have ended within a line.
  if (rest !== '') log.copy(`${rest}\n`)
}
