import type { Command } from 'commander'
import { formatBytes, formatDuration } from '../lib/quantities.ts'
import { cancelAnyUpload, listOpenUploads, parseUploadId } from '../registry/uploads.ts'
import { printJson, printTable, tell } from './printing.ts'
import { asChange, configOption, withStores } from './stores.ts'

interface ListOptions {
  readonly config?: string
  readonly account?: string
  readonly repository?: string
  readonly json?: true
}

/** A longer list is not read by anybody; the filters make it shorter. */
const listedMax = 1_000

export function addUploadCommand(program: Command): void {
  const upload = program
    .command('upload')
    .summary('list and cancel unfinished uploads')
    .description('List and cancel unfinished uploads, beside a running server if there is one.')
  upload
    .command('list')
    .description(`list unfinished uploads, those first that were idle longest (at most ${listedMax})`)
    .option(...configOption)
    .option('--account <account>', 'only those of this account')
    .option('--repository <repository>', 'only those of this repository')
    .option('--json', 'as JSON')
    .action(list)
  upload
    .command('cancel <id>')
    .description('cancel an upload; its bytes go to the trash, and its client has to begin again')
    .option(...configOption)
    .action(cancel)
}

async function list({ config, account, repository, json }: ListOptions): Promise<void> {
  await withStores(config, async (place) => {
    const uploads = await listOpenUploads(place, { account, repository }, listedMax)
    if (json) return printJson(uploads)
    printTable(
      ['ID', 'ACCOUNT', 'REPOSITORY', 'USER', 'SIZE', 'AGE', 'IDLE'],
      uploads.map(({ id, account, repository, subject, sizeBytes, ageMs, idleMs, isWritten }) => [
        id,
        account,
        repository,
        subject,
        formatBytes(sizeBytes),
        formatDuration(ageMs),
        isWritten ? 'in use' : formatDuration(idleMs),
      ]),
    )
    if (uploads.length === listedMax) tell(`there may be more than these ${listedMax}: use --account or --repository`)
  })
}

async function cancel(given: string, { config }: { config?: string }): Promise<void> {
  const id = parseUploadId(given)
  await withStores(
    config,
    asChange(async (place) => {
      await cancelAnyUpload(place, id)
      console.log(`cancelled ${id}`)
    }),
  )
}
