import type { Command } from 'commander'
import { formatBytes } from '../lib/quantities.ts'
import { parseDigest } from '../oci/digest.ts'
import { listDeletedManifests, purgeDeletedManifest, undeleteManifest } from '../registry/deleted-manifests.ts'
import { deleteImage } from '../registry/image-deletion.ts'
import { findRemovalTime, listUntagged } from '../registry/untagged.ts'
import {
  companionsOption,
  type DeletionFlags,
  dryRunOption,
  operator,
  printReport,
  settingsOf,
  toDeletionOptions,
} from './deletion-report.ts'
import { printJson, printTable, showTime, tell } from './printing.ts'
import { plentyOfSpace } from './repo.ts'
import { accountOption, asChange, configOption, getAccount, getRepositoryKey, withStores } from './stores.ts'

interface Options {
  readonly config?: string
  readonly account?: string
  readonly json?: true
}

const listedMax = 1_000

export function addImageCommand(program: Command): void {
  const image = program
    .command('image')
    .summary('list, delete and undelete manifests')
    .description('List, delete and undelete manifests. The server may be running.')
  image
    .command('untagged <repository>')
    .description(
      `list the manifests to which no tag, no index and no subject leads, those that have waited longest first (at most ${listedMax})`,
    )
    .option(...configOption)
    .option(...accountOption)
    .option('--json', 'print JSON')
    .action(list)
  image
    .command('delete <repository> <digest>')
    .description('delete an image with all its tags')
    .option(...configOption)
    .option(...accountOption)
    .option(...dryRunOption)
    .option(...companionsOption)
    .option('--json', 'print JSON')
    .action(remove)
  image
    .command('deleted <repository>')
    .description(`list the manifests that can be undeleted, the last deletions first (at most ${listedMax})`)
    .option(...configOption)
    .option(...accountOption)
    .option('--json', 'print JSON')
    .action(listDeleted)
  image
    .command('undelete <repository> <digest>')
    .description('bring a deleted manifest back, with its tags')
    .option(...configOption)
    .option(...accountOption)
    .action(undelete)
  image
    .command('purge <repository> <digest>')
    .description('delete a deleted manifest for good')
    .option(...configOption)
    .option(...accountOption)
    .action(purge)
}

async function list(repository: string, { config: file, account, json }: Options): Promise<void> {
  await withStores(file, async (place) => {
    const key = await getRepositoryKey(place, account, repository)
    const { items, hasMore } = await listUntagged(place, key, { after: undefined, limit: listedMax })
    const { untaggedMs = place.config.untaggedMs } = await getAccount(place, account)
    const manifests = items.map(({ id: _, ...manifest }) => ({
      ...manifest,
      removedAt: findRemovalTime(manifest, { ...place.config, untaggedMs }),
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

async function remove(repository: string, digestText: string, flags: DeletionFlags): Promise<void> {
  const digest = parseDigest(digestText)
  await withStores(
    flags.config,
    asChange(async (place) => {
      const key = await getRepositoryKey(place, flags.account, repository)
      const needs = { ...place, settings: settingsOf(place) }
      printReport(await deleteImage(needs, key, digest, toDeletionOptions(flags), operator), flags.json)
    }),
  )
}

async function listDeleted(repository: string, { config: file, account, json }: Options): Promise<void> {
  await withStores(file, async (place) => {
    const key = await getRepositoryKey(place, account, repository)
    const { items, hasMore } = await listDeletedManifests(place, key, { before: undefined, limit: listedMax })
    const manifests = items.map(({ id: _, ...manifest }) => ({
      ...manifest,
      undeletableUntil: manifest.deletedAt + place.config.undeleteMs,
    }))
    if (json) return printJson(manifests)
    printTable(
      ['DIGEST', 'TAGS', 'DELETED', 'BY', 'CAUSE', 'UNTIL'],
      manifests.map(({ digest, tags, deletedAt, deletedBy, cause, undeletableUntil }) => [
        digest,
        tags.slice(0, 5).join(' ') || '-',
        showTime(deletedAt, ''),
        deletedBy,
        cause,
        showTime(undeletableUntil, ''),
      ]),
    )
    if (hasMore) tell(`there are more than ${listedMax} manifests; the HTTP API lists all of them`)
  })
}

async function undelete(repository: string, digestText: string, { config, account }: Options): Promise<void> {
  const digest = parseDigest(digestText)
  await withStores(
    config,
    asChange(async (place) => {
      const key = await getRepositoryKey(place, account, repository)
      const needs = { ...place, disk: plentyOfSpace, settings: settingsOf(place) }
      const { manifests, tags, keptTags } = await undeleteManifest(needs, key, digest, operator)
      for (const one of manifests) console.log(one)
      if (tags.length > 0) console.log(`tags: ${tags.join(' ')}`)
      if (keptTags.length > 0) tell(`these tags exist again, and stay where they point: ${keptTags.join(' ')}`)
    }),
  )
}

async function purge(repository: string, digestText: string, { config, account }: Options): Promise<void> {
  const digest = parseDigest(digestText)
  await withStores(
    config,
    asChange(async (place) => purgeDeletedManifest(place, await getRepositoryKey(place, account, repository), digest)),
  )
}
