import { type Command, InvalidArgumentError } from 'commander'
import { type Digest, isDigest } from '../oci/digest.ts'
import { parseTag } from '../oci/names.ts'
import { parseTagPattern } from '../oci/tag-pattern.ts'
import { deleteTags } from '../registry/image-deletion.ts'
import { getTagDigest, listTagMoves, type RestoreTarget, restoreTag } from '../registry/tag-history.ts'
import { parseEnd } from './arguments.ts'
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
import { accountOption, asChange, configOption, getRepositoryKey, type Workplace, withStores } from './stores.ts'

interface Options {
  readonly config?: string
  readonly account?: string
  readonly json?: true
  readonly digest?: Digest
  readonly at?: number
}

const movesMax = 100

export function addTagCommand(program: Command): void {
  const tag = program
    .command('tag')
    .summary('show the history of tags, restore and delete them')
    .description('Show the history of tags, restore and delete them. The server may be running.')
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
  tag
    .command('delete <repository> <pattern>')
    .description('delete the tags that match, such as pr-*; their manifests stay without --images')
    .option(...configOption)
    .option(...accountOption)
    .option(...dryRunOption)
    .option('--images', 'delete the manifests that have no other tag too')
    .option(...companionsOption)
    .option('--after <tag>', 'continue after this tag')
    .option('--json', 'print JSON')
    .action(remove)
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

async function remove(
  repository: string,
  patternText: string,
  flags: DeletionFlags & { readonly after?: string },
): Promise<void> {
  const pattern = parseTagPattern(patternText)
  if (pattern === undefined) throw new Error('the pattern must be a pattern for tags, such as pr-*')
  await withStores(
    flags.config,
    asChange(async (place) => {
      const key = await getRepositoryKey(place, flags.account, repository)
      const needs = { ...place, settings: settingsOf(place) }
      const selection = { pattern, after: flags.after }
      printReport(await deleteTags(needs, key, selection, toDeletionOptions(flags), operator), flags.json)
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
