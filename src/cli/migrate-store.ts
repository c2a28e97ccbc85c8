import { type Command, InvalidArgumentError, Option } from 'commander'
import { readConfig, readMoveConfigs } from '../app/config.ts'
import { abortMove } from '../app/store-move/move-abort.ts'
import { MoveAborted } from '../app/store-move/move-state.ts'
import { type MoveResult, moveStores } from '../app/store-move/move-stores.ts'
import { formatBytes } from '../lib/quantities.ts'
import { describeError } from './describe-error.ts'
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
    .summary('move everything to other stores, while the registry serves')
    .description(
      'Move everything to the stores that another settings file names, while the registry serves. Can be interrupted and run again. In the environment, BERTH_TO_... speaks of the other file.',
    )
    .option(...configOption)
    .option('--to <file>', 'settings file that names the new stores')
    .addOption(new Option('--prepare', 'only copy blobs; the registry goes on as before').conflicts(['abort', 'force']))
    .option('--at-once <number>', 'copy so many blobs at a time', parseAtOnce, 4)
    .option('--abort', 'let the registry take changes again at its old place')
    .option('--force', 'with --abort: although all rows may be at the new place')
    .action(run)
}

function parseAtOnce(given: string): number {
  const value = /^\d+$/.test(given) ? Number(given) : 0
  if (value >= 1 && value <= 64) return value
  throw new InvalidArgumentError('It must be a number from 1 to 64.')
}

async function run(options: Options, command: Command): Promise<void> {
  if (options.abort) return abort(options)
  if (options.force) return command.error('error: --force is for --abort alone')
  if (options.to === undefined) return command.error('error: name the new stores with --to')
  await move(options, options.to)
}

async function abort(options: Options): Promise<void> {
  const frozen = await abortMove(readConfig(options.config), options.force === true)
  if (frozen === undefined) {
    console.log('nothing to do: the registry takes changes')
    return
  }
  console.log('the registry takes changes again')
  if (frozen.phase !== 'bytes') warn(`start nothing on the copy in ${frozen.place}: it does not have them`)
}

async function move(options: Options, to: string): Promise<void> {
  const { source, target } = readMoveConfigs(options.config, to)
  const progress = new MoveProgress(process.stderr)
  let isCopying = false
  let trouble: string | undefined
  let stay: string | undefined
  try {
    const settings = { atOnce: options.atOnce, isPreparation: options.prepare === true }
    const result = await moveStores(source, target, settings, {
      onStep: (step) => progress.begin(step),
      onFrozen: () => {
        stay = '--abort'
      },
      onRowsBegin: () => {
        stay = '--abort --force'
      },
      onProgress: (done, all) => {
        isCopying = true
        progress.show(done, all)
      },
      onRows: (rows) => progress.addRows(rows),
      onTrouble: (error) => {
        // Each of those that are copied at once tells of the same.
        const told = withoutControls(describeError(error))
        if (trouble === told) return
        trouble = told
        progress.begin(`trying again: ${trouble}`)
      },
    })
    progress.end()
    report(result, to)
  } catch (error) {
    progress.end()
    if (stay !== undefined && !(error instanceof MoveAborted)) {
      tell(`the registry takes no changes: run this again to go on, or with ${stay} to stay`)
    } else if (isCopying && stay === undefined) {
      tell('the registry goes on as before: run this again to go on where it was')
    }
    throw error
  }
}

function report(result: MoveResult, to: string): void {
  if (result.kind === 'damaged') {
    for (const { blob, fault } of result.damaged) {
      const { digest, sizeBytes, account, storageKey } = blob
      tell(
        `${fault}: ${digest} (${formatBytes(sizeBytes)}) of the account ${withoutControls(account)}, at ${storageKey}`,
      )
    }
    throw new Error(
      `the registry cannot be moved: ${result.damaged.length} blobs are missing or damaged; push each of them again, or delete the manifests that name it and collect, and run this again`,
    )
  }
  if (result.kind === 'prepared') {
    console.log('prepared: run this again without --prepare to move the registry')
    return
  }
  if (result.kind === 'moved') {
    const { manifests, tags, blobs, users } = result.rows
    console.log(`moved ${manifests} manifests, ${tags} tags, ${blobs} blobs and ${users} users`)
  } else console.log('the registry was moved already')
  console.log(
    `now start the servers with ${to}, send clients to them, and stop the old ones, which take no changes any more`,
  )
}
