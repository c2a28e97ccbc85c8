import type { Command } from 'commander'
import { undeleteRepository } from '../registry/deleted-manifests.ts'
import { deleteRepository } from '../registry/image-deletion.ts'
import {
  type DeletionFlags,
  dryRunOption,
  operator,
  printReport,
  settingsOf,
  toDeletionOptions,
} from './deletion-report.ts'
import { printJson, tell } from './printing.ts'
import { addRepositoryLists } from './repo-list.ts'
import { accountOption, asChange, configOption, getRepositoryKey, withStores } from './stores.ts'

export function addRepoCommand(program: Command): void {
  const repo = program
    .command('repo')
    .summary('list, show, delete and undelete repositories')
    .description('List, show, delete and undelete repositories. The server may be running.')
  addRepositoryLists(repo)
  repo
    .command('delete <repository>')
    .description('delete all images and tags of the repository (at most 500 images at once)')
    .option(...configOption)
    .option(...accountOption)
    .option(...dryRunOption)
    .option('--json', 'print JSON')
    .action(remove)
  repo
    .command('undelete <repository>')
    .description('bring back what the deletion of the repository has deleted')
    .option(...configOption)
    .option(...accountOption)
    .option('--json', 'print JSON')
    .action(undelete)
}

async function remove(repository: string, flags: DeletionFlags): Promise<void> {
  await withStores(
    flags.config,
    asChange(async (place) => {
      const key = await getRepositoryKey(place, flags.account, repository)
      const needs = { ...place, settings: settingsOf(place) }
      printReport(await deleteRepository(needs, key, toDeletionOptions(flags), operator), flags.json)
    }),
  )
}

async function undelete(repository: string, { config, account, json }: DeletionFlags): Promise<void> {
  await withStores(
    config,
    asChange(async (place) => {
      const key = await getRepositoryKey(place, account, repository)
      const undeleted = await undeleteRepository(
        { ...place, disk: plentyOfSpace, settings: settingsOf(place) },
        key,
        operator,
      )
      if (json) return printJson(undeleted)
      console.log(`undeleted ${undeleted.manifests.length} manifests and ${undeleted.tags.length} tags`)
      for (const digest of undeleted.refused) tell(`cannot undelete ${digest}: content that it names is missing`)
      if (undeleted.hasMore) tell('there is more: repeat the command')
    }),
  )
}

/** An operator may undelete while the disk is low. It adds a few rows. */
export const plentyOfSpace = { isLow: () => false }
