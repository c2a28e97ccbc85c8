import type { Command } from 'commander'
import { claimBlobStore } from '../app/blob-owner.ts'
import { orphanMinAgeMs, toGarbageAges } from '../app/registry-settings.ts'
import { formatBytes } from '../lib/quantities.ts'
import { RegistryRefusal } from '../oci/errors.ts'
import { removeOldAuditEntries } from '../registry/audit.ts'
import { type Collected, collectGarbage, forecastGarbage, ObjectsUnremoved, sweepOrphans } from '../registry/garbage.ts'
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
  readonly undelete?: number
}

export function addGcCommand(program: Command): void {
  program
    .command('gc')
    .summary('collect garbage once')
    .description(
      'Collect garbage once: blobs that no manifest uses, unfinished uploads and removed objects. The server may be running.',
    )
    .option(...configOption)
    .option('--dry-run', 'print what would be removed, and change nothing')
    .option(
      '--lease <duration>',
      'collect blobs without a manifest after this long (default: the setting garbage.lease)',
      parseAge,
    )
    .option(
      '--quarantine <duration>',
      'remove the bytes of collected blobs after this long (default: the setting garbage.quarantine)',
      parseAge,
    )
    .option(
      '--upload-idle <duration>',
      'remove unfinished uploads to which no client has written for this long (default: the setting garbage.upload_idle)',
      parseAge,
    )
    .option(
      '--undelete <duration>',
      'remove deleted manifests for good after this long (default: the setting garbage.undelete)',
      parseAge,
    )
    .option('--sweep', 'also search the whole blob store for orphaned objects, and move them to the trash')
    .action(collect)
}

async function collect(options: Options): Promise<void> {
  await withStores(options.config, async ({ config, ...stores }) => {
    const ages = {
      ...toGarbageAges(config),
      ...(options.lease === undefined ? {} : { leaseMs: options.lease }),
      ...(options.uploadIdle === undefined ? {} : { uploadIdleMs: options.uploadIdle }),
      ...(options.undelete === undefined ? {} : { undeleteMs: options.undelete }),
      ...(options.quarantine === undefined ? {} : { quarantineMs: options.quarantine }),
    }
    await claimBlobStore(stores)
    if (options.dryRun) {
      const { blobs, bytes, uploads, trashed } = await forecastGarbage(stores, ages)
      console.log(
        `would collect ${blobs} blobs (${formatBytes(bytes)}), remove ${uploads} unfinished uploads, purge ${trashed} objects`,
      )
      return
    }
    if (await isReadOnly(stores)) throw new RegistryRefusal('read-only')
    if (options.sweep)
      console.log(`moved ${await sweepOrphans(stores, orphanMinAgeMs(config))} orphaned objects to the trash`)
    await removeOldAuditEntries(stores, config.auditKeepMs)
    printTotals(await collectGarbage(stores, ages).catch(printFailures))
  })
}

function printTotals({ untagged, deleted, blobs, bytes, uploads, tagMoves, repositories, purged }: Collected): void {
  console.log(
    `collected ${blobs} blobs (${formatBytes(bytes)}), removed ${untagged} untagged manifests, ${deleted} deleted manifests, ${uploads} unfinished uploads, ${tagMoves} old moves of tags and ${repositories} empty repositories, purged ${purged} objects`,
  )
}

/** Prints the totals although some objects could not be removed. The command then fails. */
function printFailures(fault: unknown): never {
  if (!(fault instanceof ObjectsUnremoved)) throw fault
  printTotals(fault.collected)
  for (const { storageKey, error } of fault.failures) {
    console.error(`berth: cannot remove the object ${storageKey}: ${describeError(error)}`)
  }
  throw new Error(`${fault.count} objects could not be removed; the next collection tries again`)
}
