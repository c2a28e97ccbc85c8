import type { Command } from 'commander'
import { formatBytes } from '../lib/quantities.ts'
import { findAccount, listAccounts } from '../registry/accounts.ts'
import { disableAccount, enableAccount } from '../registry/service.ts'
import { parseAccount } from './arguments.ts'
import { printJson, printTable, warn } from './printing.ts'
import { asChange, configOption, type Workplace, withStores } from './stores.ts'

interface Options {
  readonly config?: string
  readonly json?: true
}

export function addAccountCommand(program: Command): void {
  const account = program
    .command('account')
    .summary('switch the registries of accounts on and off, and look into them')
    .description('The registries of accounts. A running server obeys from the next request on.')
  account
    .command('list')
    .description('list accounts')
    .option(...configOption)
    .option('--json', 'as JSON')
    .action(list)
  account
    .command('show <account>')
    .description('show the state of an account, what it holds and who belongs to it')
    .option(...configOption)
    .option('--json', 'as JSON')
    .action(show)
  account
    .command('enable')
    .argument('<account>', 'its name, or that of a new one', parseAccount)
    .description('switch the registry of an account on')
    .option(...configOption)
    .action(enable)
  account
    .command('disable')
    .argument('<account>', 'its name', parseAccount)
    .description('switch the registry of an account off; nothing in it is lost')
    .option(...configOption)
    .action(disable)
}

/** Where another service keeps the users, nobody here knows who belongs to what. */
function hasOwnUsers({ config }: Workplace): boolean {
  return config.authUrl === undefined
}

async function list(options: Options): Promise<void> {
  await withStores(options.config, async (place) => {
    const accounts = await listAccounts(place, hasOwnUsers(place))
    if (options.json) return printJson(accounts)
    printTable(
      ['ACCOUNT', 'STATE', 'IMAGES'],
      accounts.map(({ name, state, imageCount }) => [name, state, String(imageCount)]),
    )
  })
}

const usersShownMax = 20

async function show(name: string, options: Options): Promise<void> {
  await withStores(options.config, async (place) => {
    const report = await findAccount(place, name, hasOwnUsers(place))
    if (report === undefined) throw new Error(`no such account: ${name}`)
    const { content, users, ...summary } = report
    if (options.json) return printJson({ ...summary, ...content, users: users ?? null })
    const { repositories, manifests, tags, blobs, blobBytes } = content
    printTable(
      ['account', name],
      [
        ['state', summary.state],
        ['images', String(summary.imageCount)],
        ['repositories', String(repositories)],
        ['manifests', String(manifests)],
        ['tags', String(tags)],
        ['blobs', `${blobs} (${formatBytes(blobBytes)})`],
        ['users', users === undefined ? `kept by ${place.config.authUrl}` : describeUsers(users)],
      ],
    )
  })
}

function describeUsers(users: readonly string[]): string {
  if (users.length === 0) return 'none'
  const others = users.length - usersShownMax
  return users.slice(0, usersShownMax).join(', ') + (others > 0 ? ` and ${others} more` : '')
}

async function enable(name: string, options: Options): Promise<void> {
  await withStores(
    options.config,
    asChange(async (place) => {
      const isKnown = (await findAccount(place, name, hasOwnUsers(place))) !== undefined
      await enableAccount(place, name)
      console.log(`enabled ${name}`)
      if (!isKnown && hasOwnUsers(place)) warn('nobody belongs to it yet: see `berth user add --account`')
    }),
  )
}

async function disable(name: string, options: Options): Promise<void> {
  await withStores(
    options.config,
    asChange(async (place) => {
      // With users of our own, an account that nobody knows is a slip of the pen; and the right one would stay on.
      if (hasOwnUsers(place) && (await findAccount(place, name, true)) === undefined) {
        throw new Error(`no such account: ${name}`)
      }
      await disableAccount(place, name)
      console.log(`disabled ${name}`)
    }),
  )
}
