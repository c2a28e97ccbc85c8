import { Command, CommanderError } from 'commander'
import { ConfigFault } from '../app/config.ts'
import { version } from '../app/version.ts'
import { RegistryRefusal } from '../oci/errors.ts'
import { addAccountCommand } from './account.ts'
import { addConfigCommand } from './config.ts'
import { describeError } from './describe-error.ts'
import { addGcCommand } from './gc.ts'
import { addKeyCommand } from './key.ts'
import { addMigrateCommand } from './migrate.ts'
import { addMigrateStoreCommand } from './migrate-store.ts'
import { withoutControls } from './printing.ts'
import { addServeCommand } from './serve.ts'
import { addSigningKeyCommand } from './signing-key.ts'
import { addUploadCommand } from './upload.ts'
import { addUserCommand } from './user.ts'

/** Exit codes: 0 done, 1 failed, 2 asked for in a way that cannot be (arguments, settings). */
const failed = 1
const misused = 2

/** argv -> a command -> the exit code. */
export async function runCli(argv: readonly string[]): Promise<number> {
  const program = new Command('berth')
    .description('A container registry.')
    .version(`berth ${version}`, '--version', 'print the version')
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(`berth: ${onOneLine(text)}\n`) })
    .configureHelp({ subcommandTerm: termOf })
    .addHelpText('after', '\n`berth <command> --help` tells more. Settings come from berth.yaml and the environment.')
  program.commandsGroup('The server:')
  addServeCommand(program)
  addGcCommand(program)
  addUploadCommand(program)
  addConfigCommand(program)
  addMigrateCommand(program)
  addMigrateStoreCommand(program)
  program.commandsGroup('Who may do what (beside a running server or without one):')
  addUserCommand(program)
  addKeyCommand(program)
  addAccountCommand(program)
  addSigningKeyCommand(program)
  try {
    await program.parseAsync(argv, { from: 'user' })
    return 0
  } catch (error) {
    return tellFailure(error)
  }
}

/** In a list of commands: what it takes, without the options that all have. */
function termOf(command: Command): string {
  const takes = command.commands.length > 0 ? '<command>' : command.usage().replace('[options]', '').trim()
  return `${command.name()} ${takes}`.trim()
}

function tellFailure(error: unknown): number {
  // Commander has said it already.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : misused
  if (error instanceof ConfigFault) {
    console.error(`berth: ${error.message}`)
    return misused
  }
  console.error(`berth: ${withoutControls(describeError(error))}`)
  return error instanceof RegistryRefusal && error.refusal === 'identity-invalid' ? misused : failed
}

/** What commander complains of; a value that was given to an option by mistake may be a secret. */
function onOneLine(complaint: string): string {
  const words = complaint.replace(/^error: /, '').replace(/(unknown option '--[^=]*=).*'/s, "$1...'")
  return withoutControls(words.trim().replace(/\s*\n\s*/g, ' '))
}
