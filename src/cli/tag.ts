import { type Command, InvalidArgumentError } from 'commander'
import { type Digest, isDigest } from '../oci/digest.ts'
import { parseTag } from '../oci/names.ts'
import { getTagDigest, listTagMoves, type RestoreTarget, restoreTag } from '../registry/tag-history.ts'
import { parseEnd } from './arguments.ts'
import { printJson, printTable, showTime, tell } from './printing.ts'
import { accountOption, asChange, configOption, getRepositoryKey, type Workplace, withStores } from './stores.ts'

interface Options {
  readonly config?: string
  readonly account?: string
  readonly json?: true
  readonly digest?: Digest
  readonly at?: number
}

const movesMax = 100

/** The changes of commands are recorded under this name. */
const operator = { subject: 'operator' }

export function addTagCommand(program: Command): void {
  const tag = program
    .command('tag')
    .summary('show the history of tags and restore them')
    .description('Show the history of tags and restore them. The server may be running.')
  tag
    .command('show <repository> <tag>')
    .description('print the digest to which the tag points, now or at a time')
    .option(...configOption)
    .option(...accountOption)
    .option('--at <time>', 'the time, such as 2030-01-31T12:00:00Z', parseEnd)
    .action(show)
  tag
    .command('history <repository> <tag>')
    .description(`list the moves of the tag, the newest first (at most ${movesMax})`)
    .option(...configOption)
    .option(...accountOption)
    .option('--json', 'print JSON')
    .action(listMoves)
  tag
    .command('restore <repository> <tag>')
    .description('point the tag to a manifest that it had before; without --digest and --at, undo its last move')
    .option(...configOption)
    .option(...accountOption)
    .option('--digest <digest>', 'point it to this manifest', parseDigestArgument)
    .option('--at <time>', 'point it to the manifest that it had at this time, such as 2030-01-31T12:00:00Z', parseEnd)
    .action(restore)
}

async function show(repository: string, tagText: string, { config, account, at }: Options): Promise<void> {
  const tag = parseTag(tagText)
  await withStores(config, async (place) => {
    console.log(await getTagDigest(placeOf(place), await getRepositoryKey(place, account, repository), tag, at))
  })
}

async function listMoves(repository: string, tagText: string, { config, account, json }: Options): Promise<void> {
  const tag = parseTag(tagText)
  await withStores(config, async (place) => {
    const key = await getRepositoryKey(place, account, repository)
    const { items, hasMore } = await listTagMoves(place, key, tag, { before: undefined, limit: movesMax })
    if (json) return printJson(items)
    printTable(
      ['TIME', 'BY', 'CAUSE', 'FROM', 'TO'],
      items.map(({ movedAt, movedBy, cause, from, to }) => [
        showTime(movedAt, ''),
        movedBy,
        cause,
        from ?? '-',
        to ?? '-',
      ]),
    )
    if (hasMore) tell(`there are more than ${movesMax} moves; the HTTP API lists all of them`)
  })
}

async function restore(repository: string, tagText: string, options: Options): Promise<void> {
  const { config, account, digest, at } = options
  const tag = parseTag(tagText)
  if (digest !== undefined && at !== undefined) throw new Error('--digest and --at exclude each other')
  const target: RestoreTarget =
    digest !== undefined ? { digest } : at !== undefined ? { time: at } : 'before the last move'
  await withStores(
    config,
    asChange(async (place) => {
      const key = await getRepositoryKey(place, account, repository)
      console.log(await restoreTag(placeOf(place), key, tag, target, operator))
    }),
  )
}

function placeOf({ metadata, config }: Workplace) {
  return { metadata, settings: { tagHistoryMs: config.tagHistoryMs } }
}

function parseDigestArgument(given: string): Digest {
  if (isDigest(given)) return given
  throw new InvalidArgumentError('It must be a digest such as sha256:<64 hexadecimal digits>.')
}
