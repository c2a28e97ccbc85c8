import { Command, CommanderError } from 'commander'
import { ConfigError } from '../app/config.ts'
import { version } from '../app/version.ts'
import { RegistryRefusal } from '../oci/errors.ts'
import { addAccountCommand } from './account.ts'
import { addAuditCommand } from './audit.ts'
import { addConfigCommand } from './config.ts'
import { noteCommand } from './current-command.ts'
import { describeError } from './describe-error.ts'
import { addGcCommand } from './gc.ts'
import { addImageCommand } from './image.ts'
import { addKeyCommand } from './key.ts'
import { addMigrateCommand } from './migrate.ts'
import { addMigrateStoreCommand } from './migrate-store.ts'
import { addPolicyCommand } from './policy.ts'
import { withoutControls } from './printing.ts'
import { addRepoCommand } from './repo.ts'
import { addServeCommand } from './serve.ts'
import { addSigningKeyCommand } from './signing-key.ts'
import { addTagCommand } from './tag.ts'
import { addUploadCommand } from './upload.ts'
import { addUserCommand } from './user.ts'
import { addWorkerCommand } from './worker.ts'

// Exit codes: 0 success, 1 failure, 2 invalid arguments or settings.
const exitFailure = 1
const exitUsage = 2

/** Runs the command that the arguments name, and returns the exit code. */
export async function runCli(argv: readonly string[]): Promise<number> {
  const program = new Command('berth')
    .description('A container registry.')
    .version(`berth ${version}`, '--version', 'print the version')
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(`berth: ${onOneLine(text)}\n`) })
    .configureHelp({ subcommandTerm: termOf })
    .addHelpText(
      'after',
      '\nRun `berth <command> --help` for the options of a command.\nSettings come from berth.yaml and the environment.',
    )
  program.commandsGroup('Server:')
  addServeCommand(program)
  addWorkerCommand(program)
  addGcCommand(program)
  addUploadCommand(program)
  addRepoCommand(program)
  addTagCommand(program)
  addImageCommand(program)
  addPolicyCommand(program)
  addConfigCommand(program)
  addMigrateCommand(program)
  addMigrateStoreCommand(program)
  program.commandsGroup('Users and accounts (the server may be running or stopped):')
  addAuditCommand(program)
  addUserCommand(program)
  addKeyCommand(program)
  addAccountCommand(program)
  addSigningKeyCommand(program)
  try {
    program.hook('preAction', (_, command) => noteCommand(command))
    await program.parseAsync(argv, { from: 'user' })
    return 0
  } catch (error) {
    return printFailure(error)
  }
}

/** A command in the list of commands: its name and arguments, without options. */
function termOf(command: Command): string {
  const args = command.commands.length > 0 ? '<command>' : command.usage().replace('[options]', '').trim()
  return `${command.name()} ${args}`.trim()
}

function printFailure(error: unknown): number {
  // Commander has already printed the message.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : exitUsage
  if (error instanceof ConfigError) {
    console.error(`berth: ${error.message}`)
    return exitUsage
  }
  console.error(`berth: ${withoutControls(describeError(error))}`)
  return error instanceof RegistryRefusal && error.refusal === 'identity-invalid' ? exitUsage : exitFailure
}

/** A message of commander. The value of an unknown option is removed, because it may be a secret. */
function onOneLine(message: string): string {
  const words = message.replace(/^error: /, '').replace(/(unknown option '--[^=]*=).*'/s, "$1...'")
  return withoutControls(words.trim().replace(/\s*\n\s*/g, ' '))
}
