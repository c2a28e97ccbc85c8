// One run of the command line in a folder of its own, with nothing of the caller's environment.
import { join } from 'node:path'
import { projectRoot } from './berth-process.ts'

export interface CommandRun {
  readonly exitCode: number
  readonly stdout: string
  readonly stderr: string
}

/** `folder` is where the command runs: a `berth.yaml` there is read. */
export async function runIn(
  folder: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
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
