import type { Command } from 'commander'
import { formatBytes } from '../lib/quantities.ts'
import { findRemovalTime, listUntagged } from '../registry/untagged.ts'
import { printJson, printTable, showTime, tell } from './printing.ts'
import { accountOption, configOption, getRepositoryKey, withStores } from './stores.ts'

interface Options {
  readonly config?: string
  readonly account?: string
  readonly json?: true
}

const listedMax = 1_000

export function addImageCommand(program: Command): void {
  const image = program
    .command('image')
    .summary('list manifests')
    .description('List manifests. The server may be running.')
  image
    .command('untagged <repository>')
    .description(
      `list the manifests to which no tag, no index and no subject leads, those that have waited longest first (at most ${listedMax})`,
    )
    .option(...configOption)
    .option(...accountOption)
    .option('--json', 'print JSON')
    .action(list)
}

async function list(repository: string, { config: file, account, json }: Options): Promise<void> {
  await withStores(file, async (place) => {
    const key = await getRepositoryKey(place, account, repository)
    const { items, hasMore } = await listUntagged(place, key, { after: undefined, limit: listedMax })
    const manifests = items.map(({ id: _, ...manifest }) => ({
      ...manifest,
      removedAt: findRemovalTime(manifest, place.config),
    }))
    if (json) return printJson(manifests)
    printTable(
      ['DIGEST', 'SIZE', 'UNTAGGED SINCE', 'REMOVED AT'],
      manifests.map(({ digest, sizeBytes, since, removedAt }) => [
        digest,
        formatBytes(sizeBytes),
        showTime(since, ''),
        showTime(removedAt, 'never'),
      ]),
    )
    if (hasMore) tell(`there are more than ${listedMax} manifests; the HTTP API lists all of them`)
  })
}
