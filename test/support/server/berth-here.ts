// `berth <command>` in this process. It runs the same code as `runBerth`, without the start of a process, which takes most
// of the time of a short command. Use `runBerth` where the process itself matters: signals, a terminal, several at once.
import { runCli } from '../../../src/cli/cli.ts'
import { SerialQueue } from '../../../src/lib/serial-queue.ts'
import { projectRoot } from '../basics/test-project.ts'
import type { CommandRun } from './berth-command.ts'

type Environment = Readonly<Record<string, string>>

/** Environment, folder, streams and umask belong to the whole process, so one command runs at a time. */
const queue = new SerialQueue()

/** With nothing of the caller's environment. `folder` is the current folder of the command: a `berth.yaml` there is read. */
export function runBerthHere(
  args: readonly string[],
  environment: Environment = {},
  folder: string = projectRoot,
): Promise<CommandRun> {
  return runBerthHereWith('', args, environment, folder)
}

/** As `runBerthHere`, with this on standard input. */
export function runBerthHereWith(
  input: string | Uint8Array<ArrayBuffer>,
  args: readonly string[],
  environment: Environment,
  folder: string,
): Promise<CommandRun> {
  return queue.run(async () => {
    const printed = { stdout: '', stderr: '' }
    const restore = replaceSurroundings(input, environment, folder, printed)
    try {
      return { exitCode: await runCli(args), ...printed }
    } finally {
      restore()
    }
  })
}

function replaceSurroundings(
  input: string | Uint8Array<ArrayBuffer>,
  environment: Environment,
  folder: string,
  printed: { stdout: string; stderr: string },
): () => void {
  const before = { env: process.env, folder: process.cwd(), log: console.log, error: console.error }
  const streams = (['stdin', 'stdout', 'stderr'] as const).map(
    (name) => [name, Object.getOwnPropertyDescriptor(process, name)] as const,
  )
  const umask = process.umask(0o077)
  process.env = { PATH: before.env['PATH'] ?? '', ...environment }
  process.chdir(folder)
  const write = (name: 'stdout' | 'stderr') => (text: string | Uint8Array) => {
    printed[name] += typeof text === 'string' ? text : new TextDecoder().decode(text)
    return true
  }
  replace('stdin', new Blob([input]).stream())
  replace('stdout', { write: write('stdout'), isTTY: false })
  replace('stderr', { write: write('stderr'), isTTY: false })
  console.log = (text) => void write('stdout')(`${text}\n`)
  console.error = (text) => void write('stderr')(`${text}\n`)
  return () => {
    for (const [name, descriptor] of streams) if (descriptor) Object.defineProperty(process, name, descriptor)
    Object.assign(console, { log: before.log, error: before.error })
    process.chdir(before.folder)
    process.env = before.env
    process.umask(umask)
  }
}

function replace(name: 'stdin' | 'stdout' | 'stderr', value: unknown): void {
  Object.defineProperty(process, name, { value, configurable: true })
}
