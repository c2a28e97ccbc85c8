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
  const output = new Option('--output <format>', 'a list for people, or a settings file that `--config` reads')
  program
    .command('config')
    .summary('print the settings in force')
    .description('Print the settings in force without their secrets, or say what is wrong with them.')
    .option(...configOption)
    .addOption(output.choices(['text', 'yaml', 'json']).default('text'))
    .option('--show-secrets', 'print the secrets too')
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
  if (leftOut.length > 0) tell(`left out because they are secret (see --show-secrets): ${leftOut.join(', ')}`)
}

function show(value: unknown): string {
  return value instanceof Map ? JSON.stringify(Object.fromEntries(value)) : (JSON.stringify(value) ?? '(not set)')
}
