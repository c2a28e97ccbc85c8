import type { Command } from 'commander'
import { formatBytes } from '../lib/quantities.ts'
import {
  disableAccount,
  enableAccount,
  findAccount,
  listAccounts,
  resumeAccount,
  suspendAccount,
} from '../registry/accounts.ts'
import { addAccountLifecycle } from './account-lifecycle.ts'
import { addQuotaCommand } from './account-quota.ts'
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
    .summary('list, show, create, enable, disable, suspend, limit and delete accounts')
    .description(
      'List, show, create, enable, disable, suspend, limit and delete accounts. A running server applies a change from the next request on. The users of a disabled account who have the right `operate` can enable it with `POST /enable`; those of a suspended account cannot.',
    )
  account
    .command('list')
    .description('list accounts')
    .option(...configOption)
    .option('--json', 'print JSON')
    .action(list)
  account
    .command('show <account>')
    .description('show the state, the content and the users of an account')
    .option(...configOption)
    .option('--json', 'print JSON')
    .action(show)
  account
    .command('enable')
    .argument('<account>', 'name of an account; a new one is created', parseAccount)
    .description('enable the registry of an account; refused while the account is suspended')
    .option(...configOption)
    .action(enable)
  account
    .command('disable')
    .argument('<account>', 'name of the account', parseAccount)
    .description(
      'disable the registry of an account; nothing is deleted, and its users with the right `operate` can enable it with `POST /enable`',
    )
    .option(...configOption)
    .action(disable)
  account
    .command('suspend')
    .argument('<account>', 'name of the account', parseAccount)
    .description(
      'disable the registry of an account until `resume`; nothing is deleted, and its users cannot enable it',
    )
    .option(...configOption)
    .action(suspend)
  account
    .command('resume')
    .argument('<account>', 'name of the account', parseAccount)
    .description('end the suspension of an account; it is then enabled or disabled as before')
    .option(...configOption)
    .action(resume)
  addAccountLifecycle(account)
  addQuotaCommand(account)
}

/** With a remote identity service, Berth does not know which users belong to an account. */
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
        ['users', users === undefined ? `managed by ${place.config.authUrl}` : describeUsers(users)],
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
      const report = await findAccount(place, name, hasOwnUsers(place))
      if (report?.state === 'suspended') {
        throw new Error(`${name} is suspended: run \`berth account resume ${name}\` first`)
      }
      await enableAccount(place, name)
      console.log(`enabled ${name}`)
      if (report === undefined && hasOwnUsers(place))
        warn('the account has no users yet: see `berth user add --account`')
    }),
  )
}

async function disable(name: string, options: Options): Promise<void> {
  await withStores(
    options.config,
    asChange(async (place) => {
      const before = await findForChange(place, name)
      await disableAccount(place, name)
      const note = before?.state === 'suspended' ? '; it stays suspended until `berth account resume`' : ''
      console.log(`disabled ${name}${note}`)
    }),
  )
}

async function suspend(name: string, options: Options): Promise<void> {
  await withStores(
    options.config,
    asChange(async (place) => {
      await findForChange(place, name)
      await suspendAccount({ metadata: place.metadata, settings: place.config }, name)
      console.log(`suspended ${name}`)
    }),
  )
}

async function resume(name: string, options: Options): Promise<void> {
  await withStores(
    options.config,
    asChange(async (place) => {
      const state = await resumeAccount(place, name)
      if (state === undefined) throw new Error(`no such account: ${name}`)
      if (state === 'suspended') throw new Error(`${name} is being deleted and stays suspended`)
      console.log(`resumed ${name}, which is ${state}`)
    }),
  )
}

/** With the embedded identity service, all accounts are known. An unknown name is misspelt, and is refused. */
async function findForChange(place: Workplace, name: string) {
  const report = await findAccount(place, name, hasOwnUsers(place))
  if (report === undefined && hasOwnUsers(place)) throw new Error(`no such account: ${name}`)
  return report
}
