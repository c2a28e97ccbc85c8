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

const listedMax = 1_000

export function addUploadCommand(program: Command): void {
  const upload = program
    .command('upload')
    .summary('list and cancel unfinished uploads')
    .description('List and cancel unfinished uploads. The server may be running.')
  upload
    .command('list')
    .description(`list unfinished uploads, the longest idle first (at most ${listedMax})`)
    .option(...configOption)
    .option('--account <account>', 'list only uploads of this account')
    .option('--repository <repository>', 'list only uploads of this repository')
    .option('--json', 'print JSON')
    .action(list)
  upload
    .command('cancel <id>')
    .description('cancel an upload; its bytes are moved to the trash, and the client must start again')
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
    if (uploads.length === listedMax)
      tell(`there may be more than ${listedMax} uploads; filter them with --account or --repository`)
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
