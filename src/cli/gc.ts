import type { Command } from 'commander'
import { orphanMinAgeMs, toGarbageAges } from '../app/registry-settings.ts'
import { nameStore } from '../app/store-move/move-state.ts'
import { claimBlobStore } from '../app/stores.ts'
import { formatBytes } from '../lib/quantities.ts'
import { RegistryRefusal } from '../oci/errors.ts'
import { type Collected, collectGarbage, forecastGarbage, ObjectsKept, sweepStrays } from '../registry/garbage.ts'
import { isReadOnly } from '../registry/read-only.ts'
import { parseAge } from './arguments.ts'
import { describeError } from './describe-error.ts'
import { configOption, withStores } from './stores.ts'

interface Options {
  readonly config?: string
  readonly dryRun?: true
  readonly lease?: number
  readonly quarantine?: number
  readonly sweep?: true
  readonly uploadIdle?: number
}

export function addGcCommand(program: Command): void {
  program
    .command('gc')
    .description('collect garbage once, beside a running server if there is one')
    .option(...configOption)
    .option('--dry-run', 'say what would go, and change nothing')
    .option(
      '--lease <duration>',
      'treat blobs without a manifest as garbage after this long (default: as configured)',
      parseAge,
    )
    .option(
      '--quarantine <duration>',
      'remove the bytes of collected blobs after this long (default: as configured)',
      parseAge,
    )
    .option(
      '--upload-idle <duration>',
      'remove unfinished uploads that nobody continued for this long (default: as configured)',
      parseAge,
    )
    .option('--sweep', 'look through the whole blob store for what no row names, too')
    .action(collect)
}

async function collect(options: Options): Promise<void> {
  await withStores(options.config, async ({ config, ...stores }) => {
    const ages = {
      ...toGarbageAges(config),
      ...(options.lease === undefined ? {} : { leaseMs: options.lease }),
      ...(options.uploadIdle === undefined ? {} : { uploadIdleMs: options.uploadIdle }),
      ...(options.quarantine === undefined ? {} : { quarantineMs: options.quarantine }),
    }
    await claimBlobStore(stores, await nameStore(stores.metadata))
    if (options.dryRun) {
      const { blobs, bytes, uploads, trashed } = await forecastGarbage(stores, ages)
      console.log(
        `would collect ${blobs} blobs (${formatBytes(bytes)}), drop ${uploads} unfinished uploads, purge ${trashed} objects`,
      )
      return
    }
    if (await isReadOnly(stores)) throw new RegistryRefusal('read-only')
    if (options.sweep)
      console.log(`put ${await sweepStrays(stores, orphanMinAgeMs(config))} stray objects into the trash`)
    printTotals(await collectGarbage(stores, ages).catch(printKept))
  })
}

function printTotals({ blobs, bytes, uploads, repositories, purged }: Collected): void {
  console.log(
    `collected ${blobs} blobs (${formatBytes(bytes)}), dropped ${uploads} unfinished uploads and ${repositories} empty repositories, purged ${purged} objects`,
  )
}

/** The totals are still printed; the command ends with an error. */
function printKept(fault: unknown): never {
  if (!(fault instanceof ObjectsKept)) throw fault
  printTotals(fault.collected)
  for (const { storageKey, error } of fault.kept) {
    console.error(`berth: cannot remove the object ${storageKey}: ${describeError(error)}`)
  }
  throw new Error(`${fault.count} objects could not be removed; the next collection tries again`)
}
