import type { Command } from 'commander'
import { openStores } from '../app/build.ts'
import { readConfig } from '../app/config.ts'
import { garbageAges } from '../app/garbage-ages.ts'
import { formatBytes, parseDuration } from '../lib/quantities.ts'
import { collectGarbage, forecastGarbage } from '../registry/garbage.ts'

interface Options {
  readonly config?: string
  readonly dryRun?: true
  readonly lease?: string
  readonly quarantine?: string
}

export function addGcCommand(program: Command): void {
  program
    .command('gc')
    .description('collect garbage once, beside a running server if there is one')
    .option('--config <file>', 'settings file (default: berth.yaml, if it is there)')
    .option('--dry-run', 'say what would go, and change nothing')
    .option('--lease <duration>', 'treat blobs without a manifest as garbage after this long (default: as configured)')
    .option('--quarantine <duration>', 'remove the bytes of collected blobs after this long (default: as configured)')
    .action(collect)
}

async function collect(options: Options): Promise<void> {
  const config = readConfig(options.config)
  const ages = {
    ...garbageAges(config),
    ...(options.lease === undefined ? {} : { leaseMs: durationOf('--lease', options.lease) }),
    ...(options.quarantine === undefined ? {} : { quarantineMs: durationOf('--quarantine', options.quarantine) }),
  }
  const stores = await openStores(config)
  try {
    if (options.dryRun) {
      const { blobs, bytes, uploads, trashed } = await forecastGarbage(stores, ages)
      console.log(
        `would collect ${blobs} blobs (${formatBytes(bytes)}), drop ${uploads} uploads, purge ${trashed} objects`,
      )
      return
    }
    const { blobs, bytes, uploads, repositories, purged } = await collectGarbage(stores, ages)
    console.log(
      `collected ${blobs} blobs (${formatBytes(bytes)}), dropped ${uploads} uploads and ${repositories} empty repositories, purged ${purged} objects`,
    )
  } finally {
    await stores.metadata.close()
  }
}

function durationOf(option: string, text: string): number {
  const value = parseDuration(text)
  if (value === undefined)
    throw new Error(`${option}: ${JSON.stringify(text)} must be a duration such as 0s, 30m or 24h`)
  return value
}
