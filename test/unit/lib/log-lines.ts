// What the log prints, seen from outside: it writes to the standard output of its process.
import { projectRoot } from '../../support/basics/test-project.ts'

/** Runs the statements in a process of their own, with `openLog` and the errors of the house at hand. */
export async function printedBy(statements: string): Promise<string> {
  const program = [
    "import { openLog } from './src/lib/log.ts'",
    "import { Unavailable } from './src/oci/errors.ts'",
    statements,
    'void Unavailable',
  ]
  const child = Bun.spawn([process.execPath, '-e', program.join('\n')], {
    cwd: projectRoot,
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const printed = await new Response(child.stdout).text()
  if ((await child.exited) !== 0) throw new Error(`the process failed; it printed ${printed}`)
  return printed
}
