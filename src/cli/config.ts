import { type Command, Option } from 'commander'
import { formatSettingsFile, readConfig } from '../app/config.ts'
import { settingsTable } from '../app/settings.ts'
import { writeSettings } from '../app/written-settings.ts'
import { printJson, tell } from './printing.ts'
import { configOption } from './stores.ts'

interface Options {
  readonly config?: string
  readonly output: 'text' | 'yaml' | 'json'
  readonly showSecrets?: true
}

export function addConfigCommand(program: Command): void {
  const output = new Option('--output <format>', 'text: a list for people; yaml and json: a settings file for --config')
  program
    .command('config')
    .summary('print the current settings')
    .description(
      'Print the current settings without secrets. If settings are invalid, print the problems and exit with status 2.',
    )
    .option(...configOption)
    .addOption(output.choices(['text', 'yaml', 'json']).default('text'))
    .option('--show-secrets', 'also print secrets')
    .action(print)
}

function print({ config: file, output, showSecrets }: Options): void {
  const withSecrets = showSecrets === true
  const config = readConfig(file)
  if (output === 'text') {
    for (const [key, { name, kind }] of Object.entries(settingsTable)) {
      const value = config[key as keyof typeof config]
      const isMasked = kind.isSecret && value !== undefined && !withSecrets
      console.log(`${name}: ${isMasked ? '[secret]' : show(value)}`)
    }
    return
  }
  const { tree, leftOut } = writeSettings(config, { withSecrets })
  if (output === 'json') printJson(tree)
  else console.log(formatSettingsFile(tree))
  if (leftOut.length > 0) tell(`secrets were left out (use --show-secrets to print them): ${leftOut.join(', ')}`)
}

function show(value: unknown): string {
  return value instanceof Map ? JSON.stringify(Object.fromEntries(value)) : (JSON.stringify(value) ?? '(not set)')
}
