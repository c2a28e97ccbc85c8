import type { Command } from 'commander'
import { readConfig } from '../app/config.ts'
import { settingsTable } from '../app/settings.ts'
import { configOption } from './stores.ts'

export function addConfigCommand(program: Command): void {
  program
    .command('config')
    .description('print the settings in force, secrets masked, or say what is wrong with them')
    .option(...configOption)
    .action((options: { config?: string }) => {
      const config = readConfig(options.config)
      for (const [key, { name, kind }] of Object.entries(settingsTable)) {
        const value = config[key as keyof typeof config]
        const shown = kind.isSecret && value !== undefined ? '[secret]' : show(value)
        console.log(`${name}: ${shown}`)
      }
    })
}

function show(value: unknown): string {
  return value instanceof Map ? JSON.stringify(Object.fromEntries(value)) : (JSON.stringify(value) ?? '(not set)')
}
