import { type Command, InvalidArgumentError, Option } from 'commander'
import { readConfig, readMoveConfigs } from '../app/config.ts'
import { MoveAborted } from '../app/store-move/move-state.ts'
import { abortMoveOf, type MoveResult, moveStores } from '../app/store-move/move-stores.ts'
import { formatBytes } from '../lib/quantities.ts'
import { MoveProgress } from './move-progress.ts'
import { tell, warn, withoutControls } from './printing.ts'
import { configOption } from './stores.ts'

interface Options {
  readonly config?: string
  readonly to?: string
  readonly atOnce: number
  readonly prepare?: true
  readonly abort?: true
  readonly force?: true
}

export function addMigrateStoreCommand(program: Command): void {
  program
    .command('migrate-store')
    .summary('move the registry to other stores')
    .description(
      'Move the registry to the stores that another settings file names. Servers keep running: while the last blobs and all rows are copied, they answer pulls and refuse changes. The command can be interrupted and run again. Environment variables BERTH_TO_... set the settings of the new stores.',
    )
    .option(...configOption)
    .option('--to <file>', 'settings file that names the new stores')
    .addOption(
      new Option('--prepare', 'only copy blobs; the registry still accepts changes').conflicts(['abort', 'force']),
    )
    .option('--at-once <number>', 'number of blobs to copy at the same time', parseAtOnce, 4)
    .option('--abort', 'abort the move: the registry accepts changes again in the old stores')
    .option('--force', 'with --abort: also after the move is finished')
    .action(run)
}

function parseAtOnce(given: string): number {
  const value = /^\d+$/.test(given) ? Number(given) : 0
  if (value >= 1 && value <= 64) return value
  throw new InvalidArgumentError('It must be a number from 1 to 64.')
}

async function run(options: Options, command: Command): Promise<void> {
  if (options.abort) return abort(options)
  if (options.force) return command.error('error: --force needs --abort')
  if (options.to === undefined) return command.error('error: name the new stores with --to')
  await move(options, options.to)
}

async function abort(options: Options): Promise<void> {
  const aborted = await abortMoveOf(readConfig(options.config), options.force === true)
  if (aborted === undefined) {
    console.log('nothing to abort: the registry accepts changes')
    return
  }
  console.log('the registry accepts changes again')
  if (aborted.state === 'moved')
    warn(`start no server on the copy in ${aborted.place}: it lacks what changes from now on`)
}

async function move(options: Options, to: string): Promise<void> {
  const { source, target } = readMoveConfigs(options.config, to)
  const progress = new MoveProgress(process.stderr)
  try {
    const settings = { atOnce: options.atOnce, isPreparation: options.prepare === true }
    const result = await moveStores(source, target, settings, progress)
    progress.end()
    report(result, to)
  } catch (error) {
    progress.end()
    if (progress.hint !== undefined && !(error instanceof MoveAborted)) tell(progress.hint)
    throw error
  }
}

function report(result: MoveResult, to: string): void {
  if (result.kind === 'damaged') throw describeDamage(result.damaged)
  if (result.kind === 'prepared') {
    console.log('prepared: run this again without --prepare to move the registry')
    return
  }
  if (result.kind === 'moved') {
    const { manifests, tags, blobs, users } = result.rows
    console.log(`moved ${manifests} manifests, ${tags} tags, ${blobs} blobs and ${users} users`)
  } else console.log('the registry was moved already')
  console.log(
    `next: start the servers with ${to}, send clients to them, and stop the old servers, which refuse changes`,
  )
}

/** Prints each blob. */
function describeDamage(damaged: Extract<MoveResult, { kind: 'damaged' }>['damaged']): Error {
  for (const { blob, fault } of damaged) {
    const { digest, sizeBytes, account, storageKey } = blob
    tell(`${fault}: ${digest} (${formatBytes(sizeBytes)}) of the account ${withoutControls(account)}, at ${storageKey}`)
  }
  return new Error(
    `the registry cannot be moved: ${damaged.length} blobs are missing or damaged. Push each of them again, or delete the manifests that name them and run \`berth gc\`. Then run this again`,
  )
}
