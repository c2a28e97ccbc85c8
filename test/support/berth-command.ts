// `berth <command>` as an operator runs it, beside a server or without one.
import { projectRoot } from './berth-process.ts'

export interface CommandOutcome {
  readonly code: number
  readonly output: string
}

export async function runBerth(
  dataDir: string,
  command: readonly string[],
  settings: Readonly<Record<string, string>> = {},
): Promise<CommandOutcome> {
  const child = Bun.spawn([process.execPath, 'src/main.ts', ...command], {
    cwd: projectRoot,
    env: { ...process.env, BERTH_DATA_DIR: dataDir, ...settings },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [out, error, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  return { code, output: out + error }
}
