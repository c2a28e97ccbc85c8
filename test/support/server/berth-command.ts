// `berth <command>` as an operator runs it, in a process of its own: by itself or at a terminal.
import { join } from 'node:path'
import type { Need } from '../basics/needs.ts'
import { projectRoot } from '../basics/test-project.ts'

type Environment = Readonly<Record<string, string>>

export interface CommandRun {
  readonly exitCode: number
  readonly stdout: string
  readonly stderr: string
}

const main = join(projectRoot, 'src/main.ts')
const environmentOf = (environment: Environment) => ({ PATH: process.env['PATH'] ?? '', ...environment })

/** With nothing of the caller's environment. `folder` is the current folder of the command: a `berth.yaml` there is read. */
export async function runBerth(
  args: readonly string[],
  environment: Environment = {},
  folder: string = projectRoot,
): Promise<CommandRun> {
  const child = startCommand(args, environment, folder)
  const [stdout, stderr, exitCode] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  return { exitCode, stdout, stderr }
}

/** The process alone, for a test that ends it. */
export function startCommand(args: readonly string[], environment: Environment, folder: string) {
  return Bun.spawn([process.execPath, main, ...args], {
    cwd: folder,
    env: environmentOf(environment),
    stdout: 'pipe',
    stderr: 'pipe',
  })
}

/** The `script` of util-linux gives a command a terminal of its own. */
export const terminal: Need = {
  isMet: Bun.which('script') !== null,
  reason: 'it needs `script` of util-linux, for a terminal',
}

/** What is typed, and after which words on the screen. */
export type Typing = readonly (readonly [after: string, typed: string])[]

const patienceMs = 20_000

/** Runs words of a shell at a terminal. `screen` is all that the terminal showed, echoes included. */
export async function runAtTerminal(shellWords: string, typing: Typing, environment: Environment, folder: string) {
  const child = Bun.spawn(['script', '--quiet', '--return', '--command', shellWords, '/dev/null'], {
    cwd: folder,
    env: environmentOf(environment),
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const deadline = setTimeout(() => child.kill(), patienceMs)
  let screen = ''
  let seen = 0
  const waiting = [...typing]
  const decoder = new TextDecoder()
  for await (const chunk of child.stdout) {
    screen += decoder.decode(chunk, { stream: true })
    const [after, typed] = waiting[0] ?? []
    const at = after === undefined ? -1 : screen.indexOf(after, seen)
    if (after === undefined || typed === undefined || at === -1) continue
    seen = at + after.length
    waiting.shift()
    child.stdin.write(typed)
    child.stdin.flush()
  }
  clearTimeout(deadline)
  return { exitCode: await child.exited, screen }
}

export function runBerthAtTerminal(args: readonly string[], typing: Typing, environment: Environment, folder: string) {
  const words = [process.execPath, main, ...args].map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ')
  return runAtTerminal(words, typing, environment, folder)
}
