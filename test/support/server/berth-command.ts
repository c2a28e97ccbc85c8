// `berth <command>` as an operator runs it: beside a server, or by itself in a folder of its own.
import { join } from 'node:path'
import { projectRoot } from '../basics/test-project.ts'

export interface CommandRun {
  readonly exitCode: number
  readonly stdout: string
  readonly stderr: string
}

/** With nothing of the caller's environment. `folder` is where it runs: a `berth.yaml` there is read. */
export async function runBerth(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  folder: string = projectRoot,
): Promise<CommandRun> {
  const child = Bun.spawn([process.execPath, join(projectRoot, 'src/main.ts'), ...args], {
    cwd: folder,
    env: { PATH: process.env['PATH'] ?? '', ...environment },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [stdout, stderr, exitCode] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  return { exitCode, stdout, stderr }
}
