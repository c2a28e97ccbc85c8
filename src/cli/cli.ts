import { Command, CommanderError } from 'commander'
import { ConfigFault } from '../app/config.ts'
import { addConfigCommand } from './config.ts'
import { addGcCommand } from './gc.ts'
import { addServeCommand } from './serve.ts'

/** Exit codes: 0 done, 1 failed, 2 asked for in a way that cannot be (arguments, settings). */
const failed = 1
const misused = 2

/** argv -> a command -> the exit code. */
export async function runCli(argv: readonly string[]): Promise<number> {
  const program = new Command('berth').description('A container registry.').exitOverride()
  addServeCommand(program)
  addGcCommand(program)
  addConfigCommand(program)
  try {
    await program.parseAsync(argv, { from: 'user' })
    return 0
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : misused
    if (error instanceof ConfigFault) {
      console.error(`berth: ${error.message}`)
      return misused
    }
    console.error(`berth: ${describe(error)}`)
    return failed
  }
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message
}
