import { type Command, Option } from 'commander'
import { formatBytes } from '../lib/quantities.ts'
import { describeRepository, listRepositoryUsage, type RepositoryQuery } from '../registry/repository-lists.ts'
import { printJson, printTable, showTime, tell } from './printing.ts'
import { accountOfFirstUser, accountOption, configOption, getRepositoryKey, withStores } from './stores.ts'

interface Options {
  readonly config?: string
  readonly account?: string
  readonly json?: true
}

interface ListOptions extends Options {
  readonly search?: string
  readonly sort: RepositoryQuery['order']
}

const listedMax = 1_000

/** Adds `list` and `show` to the command `repo`. */
export function addRepositoryLists(repo: Command): void {
  repo
    .command('list')
    .description(`list repositories with their tags, manifests and bytes (at most ${listedMax})`)
    .option(...configOption)
    .option(...accountOption)
    .option('--search <text>', 'list only repositories whose name contains this text')
    .addOption(
      new Option('--sort <order>', 'by name, or the largest or the latest first')
        .choices(['name', 'size', 'pushed', 'pulled'])
        .default('name'),
    )
    .option('--json', 'print JSON')
    .action(list)
  repo
    .command('show <repository>')
    .description('show the tags, manifests and bytes of a repository')
    .option(...configOption)
    .option(...accountOption)
    .option('--json', 'print JSON')
    .action(show)
}

async function list({ config, account, json, search = '', sort }: ListOptions): Promise<void> {
  await withStores(config, async (place) => {
    const name = account ?? (await accountOfFirstUser(place))
    const found = await place.metadata.accounts.find(name)
    if (found === undefined) throw new Error(`no such account, or it was never enabled: ${name}`)
    const repositories = []
    let after: string | undefined
    do {
      const limit = listedMax - repositories.length
      const page = await listRepositoryUsage(place, () => true, found.id, { search, order: sort, after, limit })
      repositories.push(...page.repositories)
      after = page.next
    } while (after !== undefined && repositories.length < listedMax)
    if (json) return printJson(repositories.map(({ id: _, ...repository }) => repository))
    printTable(
      ['REPOSITORY', 'TAGS', 'MANIFESTS', 'SIZE', 'OWN SIZE', 'LAST PUSH', 'LAST PULL'],
      repositories.map((one) => [
        one.name,
        String(one.tags),
        String(one.manifests),
        formatBytes(one.bytes),
        formatBytes(one.ownedBytes),
        showTime(one.pushedAt, '-'),
        showTime(one.pulledAt, '-'),
      ]),
    )
    if (after !== undefined) tell(`there are more than ${listedMax} repositories; the HTTP API lists all of them`)
  })
}

async function show(repository: string, { config, account, json }: Options): Promise<void> {
  await withStores(config, async (place) => {
    const found = await describeRepository(place, await getRepositoryKey(place, account, repository))
    if (json) return printJson(found)
    printTable(
      ['repository', found.name],
      [
        ['tags', String(found.tags)],
        ['manifests', String(found.manifests)],
        ['size', formatBytes(found.bytes)],
        ['own size', formatBytes(found.ownedBytes)],
        ['last push', showTime(found.pushedAt, '-')],
        ['last pull', showTime(found.pulledAt, '-')],
      ],
    )
  })
}
