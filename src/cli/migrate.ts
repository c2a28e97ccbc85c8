import type { Command } from 'commander'
import { readConfig } from '../app/config.ts'
import { migrateSchema } from '../app/stores.ts'
import { configOption } from './stores.ts'

export function addMigrateCommand(program: Command): void {
  program
    .command('migrate')
    .summary('upgrade the database schema')
    .description(
      'Upgrade the database schema to the version of this program. On PostgreSQL, servers may be running; on SQLite, they must be stopped.',
    )
    .option(...configOption)
    .option('--dry-run', 'print the missing migrations, and change nothing')
    .action(migrate)
}

async function migrate(options: { config?: string; dryRun?: true }): Promise<void> {
  const isDryRun = options.dryRun === true
  const versions = await migrateSchema(readConfig(options.config), { isDryRun })
  if (versions.length === 0) console.log('the schema is up to date')
  else {
    const noun = versions.length === 1 ? 'migration' : 'migrations'
    console.log(`${isDryRun ? 'would apply' : 'applied'} ${noun} ${versions.join(', ')}`)
  }
}
