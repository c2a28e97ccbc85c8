// `berth <command>` with what is typed at a terminal.
import { join } from 'node:path'
import type { Need } from '../basics/needs.ts'
import { projectRoot } from '../basics/test-project.ts'

type Environment = Readonly<Record<string, string>>

const main = join(projectRoot, 'src/main.ts')

function environmentOf(environment: Environment): Record<string, string> {
  return { PATH: process.env['PATH'] ?? '', ...environment }
}

/** The `script` of util-linux gives a command a terminal of its own. */
export const terminal: Need = {
  isMet: Bun.which('script') !== null,
  reason: 'it needs `script` of util-linux, for a terminal',
}

/** What is typed, and after which words on the screen. */
export type Typing = readonly (readonly [after: string, typed: string])[]

export interface TerminalRun {
  readonly exitCode: number
  /** All that the terminal showed, echoes included. */
  readonly screen: string
}

const patienceMs = 20_000

/** Runs words of a shell at a terminal. */
export async function runAtTerminal(
  shellWords: string,
  typing: Typing,
  environment: Environment,
  folder: string,
): Promise<TerminalRun> {
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

export function runBerthAtTerminal(
  args: readonly string[],
  typing: Typing,
  environment: Environment,
  folder: string,
): Promise<TerminalRun> {
  const words = [process.execPath, main, ...args].map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ')
  return runAtTerminal(words, typing, environment, folder)
}
