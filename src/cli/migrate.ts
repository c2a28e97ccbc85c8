import type { Command } from 'commander'
import { readConfig } from '../app/config.ts'
import { migrateSchema } from '../app/stores.ts'
import { configOption } from './stores.ts'

export function addMigrateCommand(program: Command): void {
  program
    .command('migrate')
    .summary('bring the schema of the metadata up to date')
    .description('Bring the schema of the metadata up to date, beside running servers if there are any.')
    .option(...configOption)
    .option('--dry-run', 'say what is missing, and change nothing')
    .action(bringUpToDate)
}

async function bringUpToDate(options: { config?: string; dryRun?: true }): Promise<void> {
  const isDryRun = options.dryRun === true
  const versions = await migrateSchema(readConfig(options.config), { isDryRun })
  if (versions.length === 0) console.log('nothing to do')
  else console.log(`${isDryRun ? 'would apply' : 'applied'} ${versions.join(', ')}`)
}
